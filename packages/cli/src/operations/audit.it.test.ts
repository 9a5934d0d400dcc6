/** Audits of rollup rows that were damaged in several ways. */
import { beforeAll, expect, it } from '@jest/globals';
import { END_OF_TIME, MS_PER_HOUR } from '@meterline/catalog';
import {
  type PricedEvent,
  type ReadableRollups,
  readBounds,
  readDirtyHours,
  readMetrics,
  type Shards,
  sealNext,
  type Warehouse,
} from '@meterline/warehouse';
import { runCommand } from '../../../../test/cli/run-command.js';
import { event } from '../../../../test/harness/events.js';
import { databaseVariables, execute, recomputeAll, storeEvents } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { auditRollups } from './audit.js';

const DAY = Date.UTC(2025, 9, 1);
const MIDNIGHT_AFTER = Date.UTC(2025, 9, 3);

const database = testDatabase();
beforeAll(async () => {
  const first = event({ cost: '2' });
  await store([
    first,
    { ...first, revision: 1, cost: 3n * 10n ** 12n },
    event({ at: '2025-10-01T23:59:59.999Z', workspace: 'late', usage: '0.000000001' }),
    event({ at: '2025-10-02T00:00:00Z', resourceUuid: '' }),
    event({ accountId: 'globex', voided: true }),
    event({ accountId: 'globex', at: '2025-10-02T05:00:00Z' }),
  ]);
  while (await sealNext(database.shards.all, MIDNIGHT_AFTER));
});

/** As a worker does it. */
async function store(events: readonly PricedEvent[]): Promise<void> {
  await storeEvents(database.warehouse, events);
  await recomputeAll(database.warehouse);
}

/** Audits and repairs every account and all time. */
function repair(shards: Shards = database.shards) {
  const window = { startTime: 0, endTime: END_OF_TIME };
  const { signal } = new AbortController();
  const options = { shards, accountId: undefined, window, repair: true, signal, recheckMs: 1 };
  return auditRollups({ ...options, onProgress: () => undefined });
}

const damage = (query: string) => execute(database.warehouse, query);

/** An hourly row with the highest version, as a restored backup may have it. */
function versionAboveTheTruth(account: string): string {
  return `INSERT INTO usage_hourly (account_id, bucket, version, \`summary.workspace\`, \`summary.resource_type\`,
      \`summary.billing_dimension\`, \`summary.usage\`, \`summary.cost\`, \`summary.events\`)
    SELECT ${account}, toDateTime('2025-10-01 10:00:00', 'UTC'), toUInt128('340282366920938463463374607431768211455'),
      ['w'], ['sandbox'], ['sandbox_compute_runtime_gbs'], [1], [9], [1]`;
}

/** Compares the account's two days from rollup rows with those from the events alone. */
async function expectTruth(accountId: string): Promise<void> {
  const { hourly, daily } = await readBounds(database.warehouse);
  const window = { startTime: DAY, endTime: MIDNIGHT_AFTER };
  const ask = (rollups?: ReadableRollups) => {
    const metricsQuery = {
      accounts: [accountId],
      window,
      filters: {},
      limit: 100,
      ...(rollups && { rollups }),
    } as const;
    return Promise.all([
      readMetrics(database.warehouse, { ...metricsQuery, resolution: 'hourly', groupBy: ['workspace'] }),
      readMetrics(database.warehouse, { ...metricsQuery, resolution: 'daily', groupBy: ['resource_uuid'] }),
    ]);
  };
  // Rollup rows do not tell which blocks their events came from.
  const truth = (await ask()).map((response) => ({ ...response, mark: { ...response.mark, newest_block: '0' } }));
  expect(await ask({ hourly: hourly.sealedUntil, daily: daily.sealedUntil, dirtyHours: [] })).toEqual(truth);
}

const doubled = ['cost', 'usage', 'events', 'workspace', 'resource_type', 'billing_dimension'].map(
  (name) => `\`summary.${name}\` = arrayConcat(\`summary.${name}\`, \`summary.${name}\`)`,
);

it('an audit finds and repairs wrong amounts, wrong names and duplicate groups', async () => {
  for (const [table, change, account] of [
    ['usage_daily', '`detail.cost` = arrayMap(cost -> cost + 1, `detail.cost`)', 'acme'],
    ['usage_hourly', "`summary.workspace` = arrayMap(name -> 'x', `summary.workspace`)", 'acme'],
    ['usage_hourly', doubled.join(), 'globex'],
  ]) {
    await damage(`ALTER TABLE ${table} UPDATE ${change} WHERE account_id = '${account}'`);
  }
  const { differences, stillDifferent } = await repair();
  const found = new Set(differences.map(({ grain, accountId, part }) => `${grain} ${accountId} ${part}`));
  expect([...found].sort()).toEqual(['daily acme detail', 'hourly acme summary', 'hourly globex summary']);
  expect(stillDifferent).toEqual([]);
  for (const account of ['acme', 'globex']) await expectTruth(account);
});

it('an audit skips the rollup rows of dirty hours, which no query reads, and finds other differences', async () => {
  await storeEvents(database.warehouse, [event({ accountId: 'globex', at: '2025-10-01T00:00:00Z', cost: '5' })]);
  await damage(
    "ALTER TABLE usage_hourly UPDATE `detail.cost` = arrayMap(cost -> cost + 1, `detail.cost`) WHERE account_id = 'globex'",
  );
  const { differences, stillDifferent } = await repair();
  expect(differences.map(({ grain, bucket }) => [grain, (bucket - DAY) / MS_PER_HOUR])).toEqual([['hourly', 29]]);
  expect(stillDifferent).toEqual([]);
  await recomputeAll(database.warehouse);
  await expectTruth('globex');
});

it('an audit that dies after it removed a rollup row leaves the hour dirty, so that queries read its events', async () => {
  const dying: Warehouse = {
    ...database.warehouse,
    run: async (statement, rows) => {
      const written = await database.warehouse.run(statement, rows);
      if (statement.name === 'remove_rollup') throw new Error('died');
      return written;
    },
  };
  await damage(versionAboveTheTruth("'acme'"));
  await expect(repair({ ...database.shards, all: [dying] })).rejects.toThrow('died');
  const window = { startTime: DAY, endTime: MIDNIGHT_AFTER };
  expect(await readDirtyHours(database.warehouse, ['acme'], window)).toEqual([
    { accountId: 'acme', bucket: DAY + 10 * MS_PER_HOUR },
  ]);
  await damage('TRUNCATE TABLE dirty_hours');
});

it('an audit repairs rows of a restored backup that have no events or too high versions, also of dirty hours', async () => {
  await damage(versionAboveTheTruth("arrayJoin(['acme', 'ghost'])"));
  // The recomputation of a dirty hour cannot replace such a row, and clears its mark.
  await storeEvents(database.warehouse, [event({ at: '2025-10-01T10:00:00Z' })]);
  const { differences, stillDifferent } = await repair();
  expect([new Set(differences.map((each) => each.accountId)), stillDifferent]).toEqual([
    new Set(['acme', 'ghost']),
    [],
  ]);
  await recomputeAll(database.warehouse);
  await expectTruth('acme');
  await store([event({ cost: '7' })]);
  await expectTruth('acme');
});

it('the audit command compares one account or window, exits with 1 for differences, and writes only with --repair', async () => {
  const env = databaseVariables(database.options);
  const audit = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(['audit', '--json', ...args], { env });
    return { code, stderr, ...JSON.parse(stdout) };
  };
  await damage("ALTER TABLE usage_hourly DELETE WHERE account_id = 'globex' AND toHour(bucket) = 5");
  const [ofAccount, ofWindow, found] = await Promise.all([
    audit('--account', 'acme'),
    audit('--to', '2025-10-02T05:00:00Z'),
    audit('--from', '2025-10-02T05:00:00Z', '--to', '2025-10-02T06:00:00Z'),
  ]);
  expect(ofAccount).toMatchObject({ code: 0, days: 2, differences: [] });
  expect(ofWindow).toMatchObject({ code: 0, differences: [] });
  expect(found).toMatchObject({ code: 1, stderr: expect.stringContaining('--repair') });
  expect(found.differences).toContainEqual({
    ...{ grain: 'hourly', bucket: '2025-10-02T05:00:00Z', account: 'globex', part: 'detail' },
    truth: { events: 1, usage: '1', cost: '1' },
    rollup: { events: 0, usage: '0', cost: '0' },
  });
  const { differences } = found;
  expect(await audit('--repair')).toMatchObject({ code: 0, differences, stillDifferent: [] });
  const agrees = 'Compared 2 days. Every rollup row agrees with its events.\n';
  expect(await runCommand(['audit'], { env })).toMatchObject({ code: 0, stdout: agrees });
});
