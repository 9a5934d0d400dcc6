/**
 * `npm test [-- jest options]`: what must pass, in order, up to the first failure: lint, types and tests.
 *
 * `npm run test:full` runs what that leaves out: the long tests, some of all tests on two shards, a round of every fault, five minutes
 * of steady traffic and the containers. test/README.md tells which test is which.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const MODULES = join(ROOT, 'node_modules');
/** With more room for young objects the modules that each test file loads again are copied less often. */
const NODE_OPTIONS = ['--max-semi-space-size=64', '--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];

const jest = (name, args, env = {}) => ({
  name,
  args: [...NODE_OPTIONS, join(MODULES, 'jest', 'bin', 'jest.js'), ...args],
  env,
});
/** `METERLINE_TEST_SHARDS` is explained in test/setup/global-setup.mjs. */
const TWO_SHARDS = { METERLINE_TEST_SHARDS: '2', ORACLE_CASES: '30' };
const ON_TWO_SHARDS = [
  'oracle/oracle',
  'contract/(paging|metrics|accounts)',
  'metrics/read.it',
  'e2e/ingest',
  'cli/(operators|rejected)',
];

const checks = [
  { name: 'lint', args: [join(MODULES, '@biomejs', 'biome', 'bin', 'biome'), 'ci', '--error-on-warnings', '.'] },
  { name: 'nothing unused or undeclared', args: [join(MODULES, 'knip', 'bin', 'knip.js'), '--no-progress'] },
  { name: 'types', args: [join(MODULES, 'typescript', 'bin', 'tsc'), '-b'] },
];
const long = [
  jest('the long tests', ['--selectProjects', 'long'], { LONG: '1' }),
  jest('tests on two shards', ON_TWO_SHARDS, TWO_SHARDS),
  // These two run at the same time: they wait more than they work.
  [
    { name: 'faults, each once', args: ['dist/faults/main.js', '--rounds', '1', '--parallel', '4'] },
    { name: 'five minutes of steady traffic', args: ['dist/soak/main.js', '--minutes', '5'] },
  ],
  { name: 'containers', executable: 'bash', args: ['test/containers/run.sh'] },
];

/**
 * Runs the steps in order, those of a list at the same time, up to the first that fails; its exit code becomes this process's. Ctrl-C
 * reaches the child processes as well: this one waits until they have cleaned up.
 *
 * @typedef {{ name: string, args: string[], executable?: string, env?: Record<string, string> }} Step `args`: of Node, or of another
 *   `executable`; `env`: added to this process's
 * @param {(Step | Step[])[]} steps
 */
async function runSteps(steps) {
  process.on('SIGINT', () => {});
  const started = Date.now();
  for (const step of steps) {
    const codes = await Promise.all([step].flat().map(runStep));
    process.exitCode = codes.find((code) => code !== 0) ?? 0;
    if (process.exitCode !== 0) break;
  }
  console.log(`${process.exitCode === 0 ? 'All passed' : 'FAILED'} after ${secondsSince(started)}`);
}

/** @returns the exit code; 130, as for Ctrl-C, if a signal ended the process */
async function runStep({ name, args, executable = process.execPath, env }) {
  const started = Date.now();
  const child = spawn(executable, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: 'inherit' });
  const forward = () => child.kill('SIGTERM');
  process.once('SIGTERM', forward);
  // The `exit` of the child, not its `close`: a process of its own that it left behind would keep its output open.
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('exit', resolve));
  process.off('SIGTERM', forward);
  console.log(`${code === 0 ? '✓' : '✗'} ${name} (${secondsSince(started)})`);
  return code ?? 130;
}

function secondsSince(started) {
  return `${((Date.now() - started) / 1000).toFixed(1)} s`;
}

const named = process.argv.slice(2);
if (named[0] === '--full') await runSteps(long);
else await runSteps([checks, jest('tests', named.length > 0 ? named : ['--selectProjects', 'unit', 'it'])]);
