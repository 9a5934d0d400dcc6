/** Runs Node programs one after the other, for the scripts that run tests. */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');

/**
 * Arguments of Node that start jest, and its workers. With more room for young objects the modules that each test file loads again
 * are copied less often: a twentieth of a worker's processor time.
 */
export const JEST = [
  '--max-semi-space-size=64',
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
  join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js'),
];

/**
 * Test files that only `npm run test:full` runs. `npm test` has a short case of each: every kind of process is killed by
 * test/faults, test/collector and test/emitter, re-pricing, erasing, auditing and dropping old months are tested in packages/operations,
 * what is refused by test/attack and test/shards, contradicting payloads and sealing by packages/warehouse and the oracle, kept
 * answers beside a writer by test/contract/kept-answers-orders, the page by test/browser/explorer, the events behind a cell by
 * test/contract, several Redis servers by test/e2e/redis-sentinel and the addresses in packages/service, the commands of the guides by
 * test/cli, the drain of a stop by packages/service, `npm start` by packages/local-stack, and the emitter, its package and its
 * accounts by its own tests and the packed client.
 */
export const LONG_FILES = [
  'packages/warehouse/src/rollups/interleavings-of-three.test.ts',
  'test/browser/appearance.test.ts',
  'test/browser/events.test.ts',
  'test/browser/explorer-details.test.ts',
  'test/browser/reference.test.ts',
  'test/browser/states.test.ts',
  'test/cli/audit.test.ts',
  'test/cli/erase.test.ts',
  'test/cli/rejected.test.ts',
  'test/cli/reprice.test.ts',
  'test/collector/outages.test.ts',
  'test/contract/kept-answers-operations.test.ts',
  'test/contract/process.test.ts',
  'test/contract/reference-code.test.ts',
  'test/e2e/clickhouse-outage.test.ts',
  'test/e2e/corrections.test.ts',
  'test/e2e/crashes.test.ts',
  'test/e2e/redis-cluster.test.ts',
  'test/e2e/redis-failures.test.ts',
  'test/e2e/redis-outage.test.ts',
  'test/e2e/rejections.test.ts',
  'test/e2e/sealing.test.ts',
  'test/e2e/silent-redis.test.ts',
  'test/e2e/start-up.test.ts',
  'test/emitter/accounts.test.ts',
  'test/generated-clients/generated-clients.test.ts',
  'test/guides/guides.test.ts',
  'test/guides/programs.test.ts',
  'test/observability/outage-metrics.test.ts',
  'test/observability/tracing.test.ts',
  'test/packages/emitter.test.ts',
  'test/packages/published.test.ts',
  'test/retention/interleavings.test.ts',
  'test/retention/retention.test.ts',
  'test/trace/full-trace.test.ts',
];

/** Test files with a short form, which `npm test` runs, and a long one, which `npm run test:full` runs. */
export const SHORTENED_FILES = [
  'packages/catalog/src/api/exact-json.test.ts',
  'packages/operations/src/retention.test.ts',
  'packages/warehouse/src/rollups/interleavings.test.ts',
  'packages/warehouse/src/rollups/large-cells.test.ts',
  'packages/warehouse/src/schema/move-events.test.ts',
  'services/collector/src/events/arriving-body.test.ts',
  'services/collector/src/events/arriving-events.test.ts',
  'services/collector/src/events/usual-event.test.ts',
  'services/ingest/src/job-scanner.test.ts',
  'services/ingest/src/usual-event.test.ts',
  'test/collector/kill.test.ts',
  'test/contract/kept-answers-orders.test.ts',
  'test/contract/large-cells-orders.test.ts',
  'test/contract/stored-pages.test.ts',
  'test/e2e/clickhouse-users.test.ts',
  'test/e2e/ingest.test.ts',
  'test/oracle/oracle.test.ts',
  'test/shards/shards.test.ts',
];

/** What runs once more on two ClickHouse servers, as one cluster: `npm test` has what answers, test/shards the rest in short. */
export const SHORT_ON_SHARDS = { files: ['test/oracle/oracle.test.ts', 'test/contract/paging.test.ts'], cases: 10 };
export const LONG_ON_SHARDS = {
  files: [
    'test/oracle/oracle.test.ts',
    'test/contract/paging.test.ts',
    'test/contract/group-by.test.ts',
    'test/e2e/corrections.test.ts',
    'test/e2e/sealing.test.ts',
    'test/cli/erase.test.ts',
    'test/cli/rejected.test.ts',
    'test/cli/reprice.test.ts',
  ],
  cases: 60,
};

/**
 * @param {{ files: string[], cases: number, timeZone: string }} tests `cases`: of the oracle
 * @returns a step that runs them with METERLINE_TEST_SHARDS, which test/setup/global-setup.mjs explains
 */
export function onShards({ files, cases, timeZone }) {
  return {
    name: 'tests on two shards',
    args: [...JEST, ...files],
    env: { METERLINE_TEST_SHARDS: '2', ORACLE_CASES: String(cases), TZ: timeZone },
  };
}

/**
 * Runs the steps in order, up to the first that fails; its exit code becomes this process's. Steps in a list run at the same time,
 * and each line of theirs begins with the step's name.
 *
 * @typedef {{ name: string, args: string[], env?: Record<string, string> }} Step `args`: of Node; `env`: added to this process's
 * @param {(Step | Step[])[]} steps
 * @returns the names of the steps that failed, if any did, and how long all took, such as `12.3 s`
 */
export async function runSteps(steps) {
  ignoreInterrupts();
  const started = Date.now();
  for (const step of steps) {
    const isAlone = !Array.isArray(step);
    const results = await Promise.all((isAlone ? [step] : step).map((one) => runStep(one, isAlone)));
    const failed = results.filter(({ code }) => code !== 0);
    if (failed.length === 0) continue;
    process.exitCode = failed[0].code;
    return { failed: failed.map(({ name }) => name).join(' and '), duration: secondsSince(started) };
  }
  return { duration: secondsSince(started) };
}

async function runStep({ name, args, env }, isAlone) {
  const started = Date.now();
  const onLine = isAlone ? undefined : (line) => console.log(`${name} | ${line}`);
  const code = await runNode(args, { env: { ...process.env, ...env }, onLine });
  console.log(`${code === 0 ? '✓' : '✗'} ${name} (${secondsSince(started)})`);
  return { name, code };
}

/** Ctrl-C reaches the child process as well; this process waits until the child has cleaned up, and then reports the result. */
export function ignoreInterrupts() {
  process.on('SIGINT', () => {});
}

/** @returns the exit code; 130, as for Ctrl-C, if a signal ended the process */
export function runNode(args, { env, executable = process.execPath, onLine }) {
  return new Promise((resolve, reject) => {
    const output = onLine ? 'pipe' : 'inherit';
    const child = spawn(executable, args, { cwd: ROOT, env, stdio: ['inherit', output, output] });
    for (const input of onLine ? [child.stdout, child.stderr] : []) createInterface({ input }).on('line', onLine);
    const forward = () => child.kill('SIGTERM');
    process.once('SIGTERM', forward);
    // Not its `close`: a process of its own that it left behind would keep its output open.
    child.once('error', reject).once('exit', (code) => {
      process.off('SIGTERM', forward);
      resolve(code ?? 130);
    });
  });
}

/** Such as `12.3 s`. */
export function secondsSince(started) {
  return `${((Date.now() - started) / 1000).toFixed(1)} s`;
}
