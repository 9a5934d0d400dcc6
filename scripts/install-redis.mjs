/** Installs Redis with the system's package manager. make-ready.mjs runs this script in a session of its own, in parallel to `npm ci`. */
import { installProgram, REDIS } from '../packages/local-stack/src/system-package.js';

await installProgram({ ...REDIS, env: process.env, say: (line) => console.log(`${line} (continues after Ctrl-C)`) });
