/**
 * Runs only the property test against the oracle, with a chosen number of cases.
 *
 * Usage: `npm run test:oracle [-- --long | --cases N] [--seed N [--path P]]`; --long is 5,000 cases. A failure prints the
 * seed and the path that repeat it, after shrinking.
 */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const JEST = join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js');
const LONG_RUN = '5000';

const { values } = parseArgs({
  options: {
    long: { type: 'boolean' },
    cases: { type: 'string' },
    seed: { type: 'string' },
    path: { type: 'string' },
  },
});
const cases = values.cases ?? (values.long ? LONG_RUN : undefined);
const settings = { ORACLE_CASES: cases, ORACLE_SEED: values.seed, ORACLE_PATH: values.path };

for (const [name, value] of Object.entries({ cases, seed: values.seed })) {
  if (value !== undefined && !/^[1-9]\d*$/.test(value)) throw new Error(`--${name} must be a whole number above zero`);
}

// Ctrl-C reaches jest as well; this process waits until jest has cleaned up.
process.on('SIGINT', () => {});
spawn(
  process.execPath,
  ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', JEST, 'test/oracle/oracle.test.ts'],
  { cwd: ROOT, env: { ...process.env, ...settings }, stdio: 'inherit' },
).once('exit', (code) => {
  process.exitCode = code ?? 130;
});
