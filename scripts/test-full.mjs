/**
 * What proves more than `npm test` and takes longer: a round of every fault several times with larger streams, every order
 * of calls of sealers and writers, five times as many cases of the oracle, and a walk through 25,000 groups. About a quarter of
 * an hour on two cores.
 *
 * Usage: `npm run test:full`.
 */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const JEST = [
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
  join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js'),
];

/** @type {{ name: string, args: string[], env?: Record<string, string> }[]} */
const steps = [
  {
    name: 'the oracle, 1,000 cases, every order of calls, and 25,000 groups',
    args: [
      ...JEST,
      'test/oracle/oracle.test.ts',
      'rollups/interleavings.test.ts',
      'test/contract/stored-pages.test.ts',
    ],
    env: { ORACLE_CASES: '1000', METERLINE_TEST_CHANGES: '11', METERLINE_TEST_GROUPS: '25000' },
  },
  { name: 'faults, 20 rounds', args: ['--import', 'tsx', 'test/faults/main.ts', '--rounds', '20', '--lanes', '4'] },
];

// Ctrl-C reaches the step as well; this process waits until that one has cleaned up, and then reports it.
process.on('SIGINT', () => {});

const started = Date.now();
for (const { name, args, env } of steps) {
  const stepStarted = Date.now();
  const code = await run(args, env);
  console.log(`${code === 0 ? '✓' : '✗'} ${name} (${seconds(stepStarted)})`);
  if (code === 0) continue;
  process.exitCode = code;
  break;
}
console.log(`${process.exitCode ? 'FAILED' : 'All passed'} after ${seconds(started)}`);

/** The exit code; 130, as for Ctrl-C, if a signal ended the step. */
function run(args, env) {
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
