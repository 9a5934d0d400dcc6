#!/usr/bin/env node
/** The `meterline` command: plain JavaScript, because a fresh checkout has nothing compiled yet. */
import { existsSync } from 'node:fs';
import module from 'node:module';

const main = new URL('../dist/main.js', import.meta.url);

if (!existsSync(main)) {
  process.stderr.write('meterline: not built yet; run "npm install" and "npm run build", or "npm start"\n');
  process.exit(1);
}
// Node 22.8 and later keep what they have compiled, which saves a third of the start.
module.enableCompileCache?.();
await import(main.href);
