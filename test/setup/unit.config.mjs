/**
 * `npm run test:unit`: every test that needs no server and starts no process; takes seconds. A test file belongs to it if
 * its imports reach nothing in NEEDS_MORE. A file that is included by mistake fails, because no server is started.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import all from '../../jest.config.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NEEDS_MORE =
  /^node:child_process$|^@meterline\/local-stack$|^playwright-core$|^vite$|\/(stack|services|host-process)\.js$/;
const IMPORT = /^(?:import|export)\b[^;]*?\bfrom '([^']+)';$/gm;

const known = new Map();

/** Whether a file, or a file that it imports, starts servers or processes. */
function startsMore(file) {
  const found = known.get(file);
  if (found !== undefined) return found;
  known.set(file, false);
  const imports = [...readFileSync(file, 'utf8').matchAll(IMPORT)].map(([, name]) => name);
  const ownFiles = imports
    .filter((name) => name.startsWith('.'))
    .map((name) => resolve(dirname(file), name))
    .flatMap((path) => [path, path.replace(/\.js$/, '.ts'), path.replace(/\.js$/, '.tsx')])
    .filter((path) => existsSync(path));
  known.set(file, imports.some((name) => NEEDS_MORE.test(name)) || ownFiles.some(startsMore));
  return known.get(file);
}

function unitTests() {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '*.test.ts'];
  const { stdout } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  const files = stdout.split('\n').filter((file) => file !== '' && existsSync(join(ROOT, file)));
  return files.filter((file) => !startsMore(join(ROOT, file)));
}

// The same time zone as in `npm test`; workers inherit it.
process.env.TZ ||= 'America/New_York';

const { globalSetup: _setup, globalTeardown: _teardown, ...rest } = all;

export default {
  ...rest,
  rootDir: ROOT,
  testMatch: unitTests().map((file) => `<rootDir>/${file}`),
  // These tests do not wait, so one worker for each processor.
  maxWorkers: availableParallelism(),
};
