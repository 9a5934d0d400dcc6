/**
 * The whole proof, in order, up to the first failure: lint, types, every test. Tests run in a time zone that is not UTC and
 * has daylight saving time, where code that means local time shows; `TZ=… npm test` takes another.
 *
 * Usage: `npm test [-- jest options]`.
 */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const BIN = join(ROOT, 'node_modules');
const TIME_ZONE = process.env.TZ || 'America/New_York';
const jest = [
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
  join(BIN, 'jest', 'bin', 'jest.js'),
  ...process.argv.slice(2),
];

/** @type {{ name: string, args: string[], env?: Record<string, string> }[]} */
const steps = [
  { name: 'lint', args: [join(BIN, '@biomejs', 'biome', 'bin', 'biome'), 'ci', '--error-on-warnings', '.'] },
  { name: 'types', args: [join(BIN, 'typescript', 'bin', 'tsc'), '-b'] },
  { name: `tests in ${TIME_ZONE}`, args: jest, env: { TZ: TIME_ZONE } },
];

// Ctrl-C reaches the step as well; this process waits until that one has cleaned up, and then reports it.
process.on('SIGINT', () => {});

const started = Date.now();
let failed;
for (const step of steps) {
  const stepStarted = Date.now();
  const outcome = await run(step);
  console.log(`${outcome === 0 ? '✓' : '✗'} ${step.name} (${seconds(stepStarted)})`);
  if (outcome !== 0) {
    failed = step.name;
    process.exitCode = outcome;
    break;
  }
}
console.log(
  failed ? `FAILED at ${failed} after ${seconds(started)}` : `All ${steps.length} steps passed in ${seconds(started)}`,
);

/** The exit code; 130, as for Ctrl-C, if a signal ended the step. */
function run({ args, env }) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: 'inherit' });
    const forward = () => child.kill('SIGTERM');
    process.once('SIGTERM', forward);
    child.once('exit', (code) => {
      process.off('SIGTERM', forward);
      resolve(code ?? 130);
    });
  });
}

function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}
