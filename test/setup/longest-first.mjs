/**
 * Runs the slowest test files first, so that none of them runs alone at the end. Jest itself knows the durations only after
 * the first run in a checkout.
 */
const LONGEST = [
  'test/faults/faults',
  'rollups/interleavings',
  'test/guides/guides',
  'test/e2e/corrections',
  'test/oracle/oracle',
  'packages/local-stack/src/start/start',
  'test/shards/shards',
  'packages/operations/src/retention',
  'test/e2e/start-up',
  'test/contract/stored-pages',
  'test/browser/',
  'test/e2e/clickhouse-outage',
  'test/e2e/crashes',
  'test/e2e/ingest',
  'schema/move-events',
  'test/attack/',
  'test/generated-clients/',
  'test/collector/outages',
  'test/e2e/redis-outage',
  'test/observability/outage-metrics',
  'test/observability/tracing',
  'test/emitter/kill',
  'test/cli/meterline',
  'test/contract/process',
  'test/contract/reference-code',
  'test/e2e/',
  'test/retention/',
  'test/cli/reprice',
  'test/emitter/accounts',
  'test/contract/client',
  'test/contract/authorisation-matrix',
  'test/collector/',
  'metrics/event-list',
  'metrics/stored-pages',
  'rollups/',
  'engine/local-stack',
  'packages/operations/',
  'test/observability/full-log',
  'test/cli/',
  'test/contract/',
  'test/',
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
