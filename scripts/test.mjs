/**
 * Runs the steps of a test tier in order, up to the first failure. test/README.md explains the tiers.
 *
 * - `npm test [-- jest options]`: lint, unit and it
 * - `npm run test:full`: the long tests, two shards, servers with a hostile profile, each fault once, the containers
 * - `npm run test:nightly`: hours of random cases, faults and traffic
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const MODULES = join(ROOT, 'node_modules');
/** Each test file loads its modules again. With a larger young generation, the garbage collector copies them less often. */
const NODE_OPTIONS = ['--max-semi-space-size=64', '--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];

/** Tests that must pass with any number of shards, because services and operators must not notice the number of shards. */
const ON_TWO_SHARDS = ['oracle/oracle', 'contract/', 'metrics/read.it', 'e2e/ingest', 'cli/(operators|rejected)'];

const jest = (name, args, env = {}) => ({
  name,
  args: [...NODE_OPTIONS, join(MODULES, 'jest', 'bin', 'jest.js'), ...args],
  env,
});
const program = (name, file, ...args) => ({ name, args: [join('dist', file), ...args] });

/** Runs tests on two ClickHouse servers that form a cluster; see test/setup/global-setup.mjs. */
const onTwoShards = (name, files, cases) =>
  jest(name, files, { METERLINE_TEST_SHARDS: '2', ORACLE_CASES: String(cases) });

/** Runs tests on ClickHouse servers with a hostile user profile; see test/setup/hostile-profile.mjs. */
const withHostileProfile = (name, shards, files) =>
  jest(`${name} with a hostile profile`, files, {
    METERLINE_TEST_SHARDS: shards,
    METERLINE_TEST_PROFILE: 'hostile',
    ORACLE_CASES: '30',
  });

const checks = [
  { name: 'lint', args: [join(MODULES, '@biomejs', 'biome', 'bin', 'biome'), 'ci', '--error-on-warnings', '.'] },
  { name: 'nothing unused or undeclared', args: [join(MODULES, 'knip', 'bin', 'knip.js'), '--no-progress'] },
];

const full = [
  jest('the long tests', ['--selectProjects', 'long']),
  withHostileProfile('the oracle and the contract on two shards', '2', [
    '--selectProjects',
    'it',
    '--',
    'oracle/oracle',
    'contract/',
  ]),
  withHostileProfile('orders of statements', '1', ['rollups/interleavings.it']),
  // These two steps run in parallel, because both mostly wait.
  [
    program('each fault once', 'faults/main.js', '--rounds', '1', '--parallel', '4'),
    { name: 'containers', executable: 'bash', args: ['test/containers/run.sh'] },
  ],
];

const nightly = [
  jest('5,000 oracle cases', ['oracle/oracle'], { ORACLE_CASES: '5000' }),
  jest('40,000 fuzzed requests and events', ['fuzz/fuzz'], { FUZZ_REQUESTS: '40000', FUZZ_EVENTS: '40000' }),
  onTwoShards('the tests that must not notice two shards', ON_TWO_SHARDS, 300),
  withHostileProfile('the long tests of the contract and of rollups', '1', [
    '--selectProjects',
    'long',
    '--',
    'contract/',
    'rollups/',
  ]),
  program('300 rounds of faults', 'faults/main.js', '--rounds', '300', '--parallel', '4'),
  program('an hour of steady traffic', 'faults/main.js', '--minutes', '60'),
];

/**
 * Runs the steps in order until one fails, and exits with its exit code. The steps of a nested list run in parallel. Ctrl-C also reaches the
 * child processes, so this process waits until they have cleaned up.
 *
 * @typedef {{ name: string, args: string[], executable?: string, env?: Record<string, string> }} Step `args`: arguments of Node or of
 *   `executable`; `env`: additional environment variables
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

/** Runs a step. Returns its exit code, or 130, the code for Ctrl-C, if a signal ended the process. */
async function runStep({ name, args, executable = process.execPath, env }) {
  const started = Date.now();
  const child = spawn(executable, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: 'inherit' });
  const forward = () => child.kill('SIGTERM');
  process.once('SIGTERM', forward);
  // Wait for `exit`, because a running grandchild would keep the output open and delay `close`.
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('exit', resolve));
  process.off('SIGTERM', forward);
  console.log(`${code === 0 ? '✓' : '✗'} ${name} (${secondsSince(started)})`);
  return code ?? 130;
}

function secondsSince(started) {
  return `${((Date.now() - started) / 1000).toFixed(1)} s`;
}

const [tier, ...rest] = process.argv.slice(2);
if (tier === '--full') await runSteps(full);
else if (tier === '--nightly') await runSteps(nightly);
else await runSteps([checks, jest('tests', tier ? [tier, ...rest] : ['--selectProjects', 'unit', 'it'])]);
