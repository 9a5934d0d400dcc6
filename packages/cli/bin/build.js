/** The build of this package and what it builds on, for a fresh checkout. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('..', import.meta.url));

/**
 * Whether it went well. Forced, because a removed dist/ may have left the record of its build behind, which makes tsc believe that
 * there is nothing to do. Messages go to stderr: stdout is for results.
 */
export function build() {
  try {
    const manifest = createRequire(import.meta.url).resolve('typescript/package.json');
    const compiler = resolve(dirname(manifest), JSON.parse(readFileSync(manifest, 'utf8')).bin.tsc);
    const { status } = spawnSync(process.execPath, [compiler, '-b', '--force', project], { stdio: ['ignore', 2, 2] });
    return status === 0;
  } catch (error) {
    process.stderr.write(`meterline: TypeScript is not installed (${error.code ?? error.message})\n`);
    return false;
  }
}
