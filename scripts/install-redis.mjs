/** Installs Redis with the system's package manager. make-ready.mjs runs it beside `npm install`. */
import { installProgram, REDIS } from '../packages/local-stack/src/system-package.js';

await installProgram({ ...REDIS, env: process.env, say: console.log });
