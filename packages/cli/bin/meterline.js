#!/usr/bin/env node
/**
 * The `meterline` command. A fresh checkout has no build yet, so the first call makes it; plain JavaScript, because
 * nothing is compiled when it runs.
 */
import { existsSync } from 'node:fs';
import module from 'node:module';

const main = new URL('../dist/main.js', import.meta.url);

if (!existsSync(main)) {
  process.stderr.write('meterline: not built yet, building it first …\n');
  const { build } = await import('./build.js');
  if (!build() || !existsSync(main)) {
    process.stderr.write('meterline: the build failed; run "npm install", then "npm run build"\n');
    process.exit(1);
  }
}
// Node 22.8 and later keep what they have compiled, which saves a third of the start.
module.enableCompileCache?.();
await import(main.href);
