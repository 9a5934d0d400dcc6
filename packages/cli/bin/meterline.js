#!/usr/bin/env node
/** The `meterline` command: plain JavaScript, because a fresh checkout has nothing compiled yet. */
import { existsSync } from 'node:fs';
import module from 'node:module';
import { setFlagsFromString } from 'node:v8';

const main = new URL('../dist/main.js', import.meta.url);

if (!existsSync(main)) {
  process.stderr.write('meterline: not built yet; run "npm install" and "npm run build", or "npm start"\n');
  process.exit(1);
}
// Node 22.8 and later keep what they have compiled, which saves a third of the start.
module.enableCompileCache?.();
// The HTTP parser behind fetch is WebAssembly. Node waits at its end until that is optimised, which takes 0.2 s and serves long runs alone.
setFlagsFromString('--no-wasm-tier-up');
setFlagsFromString('--no-wasm-dynamic-tiering');
await import(main.href);
