/**
 * Runs the slowest test files first, so that none of them runs alone at the end. Jest itself knows the durations only after
 * the first run in a checkout.
 */
const LONGEST = [
  'test/faults/faults',
  'test/guides/guides',
  'packages/local-stack/src/start/start',
  'test/oracle/oracle',
  'test/e2e/corrections',
  'test/e2e/start-up',
  'test/cli/meterline',
  'test/e2e/clickhouse-outage',
  'test/e2e/crashes',
  'rollups/interleavings',
  'test/e2e/redis-outage',
  'test/observability/outage-metrics',
  'test/emitter/kill',
  'test/browser/',
  'test/e2e/sealing',
  'test/observability/tracing',
  'test/contract/process',
  'test/cli/reprice',
  'test/cli/audit',
  'test/e2e/',
  'test/cli/',
  'test/contract/',
];

export default class LongestFirst {
  sort(tests) {
    const order = [...tests].sort(
      (a, b) => rank(a) - rank(b) || b.context.hasteFS.getSize(b.path) - a.context.hasteFS.getSize(a.path),
    );
    return order;
  }

  /** Failures of the last run are not remembered, so `--onlyFailures` runs all files. */
  allFailedTests(tests) {
    return tests;
  }

  cacheResults() {}

  shard() {
    throw new Error('--shard is not supported');
  }
}

function rank({ path }) {
  const place = LONGEST.findIndex((name) => path.includes(name));
  return place === -1 ? LONGEST.length : place;
}
