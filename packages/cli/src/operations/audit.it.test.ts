/** Auditing rollup rows that were damaged in every way that one could think of. */
import { beforeAll, expect, it } from '@jest/globals';
import { END_OF_TIME, MS_PER_HOUR } from '@meterline/catalog';
import {
  type PricedEvent,
  type ReadableRollups,
  readDirtyHours,
  readMetrics,
  readWatermarks,
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

/** Audits every account and all time. */
function audit({ repair, shards = database.shards }: { repair: boolean; shards?: Shards }) {
  const window = { startTime: 0, endTime: END_OF_TIME };
  const { signal } = new AbortController();
  const options = { shards, accountId: undefined, window, repair, signal, recheckMs: 1 };
  return auditRollups({ ...options, onProgress: () => undefined });
}

async function damage(query: string): Promise<void> {
  await execute(database.warehouse, query);
}

/** A row as only a restored backup may have it. */
function versionAboveTheTruth(account: string): string {
  return `INSERT INTO usage_hourly (account_id, bucket, version, \`summary.workspace\`, \`summary.resource_type\`,
      \`summary.billing_dimension\`, \`summary.usage\`, \`summary.cost\`, \`summary.events\`)
    SELECT ${account}, toDateTime('2025-10-01 10:00:00', 'UTC'), toUInt128('340282366920938463463374607431768211455'),
      ['w'], ['sandbox'], ['sandbox_compute_runtime_gbs'], [1], [9], [1]`;
}

/** The account's two days, from rollup rows and from the events alone. */
async function responses(accountId: string) {
  const { hourly, daily } = await readWatermarks(database.warehouse);
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
  return { rollups: await ask({ hourly: hourly.sealedUntil, daily: daily.sealedUntil, dirtyHours: [] }), truth };
}

it('an audit finds nothing where nothing is wrong', async () => {
  expect(await audit({ repair: false })).toEqual({ days: 2, differences: [], stillDifferent: [] });
});

it.each([
  [
    'a group has another amount',
    'daily',
    'UPDATE `detail.cost` = arrayMap(cost -> cost + 1, `detail.cost`)',
    ['detail'],
  ],
  [
    'a group has another name',
    'hourly',
    "UPDATE `summary.workspace` = arrayMap(name -> 'x', `summary.workspace`)",
    ['summary'],
  ],
  [
    'a group is doubled',
    'hourly',
    'UPDATE `summary.cost` = arrayConcat(`summary.cost`, `summary.cost`), `summary.usage` = arrayConcat(`summary.usage`, `summary.usage`), `summary.events` = arrayConcat(`summary.events`, `summary.events`), `summary.workspace` = arrayConcat(`summary.workspace`, `summary.workspace`), `summary.resource_type` = arrayConcat(`summary.resource_type`, `summary.resource_type`), `summary.billing_dimension` = arrayConcat(`summary.billing_dimension`, `summary.billing_dimension`)',
    ['summary'],
  ],
])('an audit finds that %s, and repairs it', async (_what, grain, update, parts) => {
  await damage(`ALTER TABLE usage_${grain} ${update} WHERE account_id = 'acme'`);
  const { differences } = await audit({ repair: false });
  expect(new Set(differences.map((each) => each.part))).toEqual(new Set(parts));
  expect((await audit({ repair: true })).stillDifferent).toEqual([]);
  const { rollups, truth } = await responses('acme');
  expect(rollups).toEqual(truth);
});

it('an audit leaves out rollup rows whose hours are dirty, which no query reads, and finds what is wrong beside them', async () => {
  await storeEvents(database.warehouse, [event({ accountId: 'globex', at: '2025-10-01T00:00:00Z', cost: '5' })]);
  expect((await audit({ repair: true })).differences).toEqual([]);
  await damage(
    "ALTER TABLE usage_hourly UPDATE `detail.cost` = arrayMap(cost -> cost + 1, `detail.cost`) WHERE account_id = 'globex'",
  );
  const { differences } = await audit({ repair: false });
  const day = Date.UTC(2025, 9, 1);
  expect(differences.map(({ grain, bucket }) => [grain, (bucket - day) / 3_600_000])).toEqual([['hourly', 29]]);
  await recomputeAll(database.warehouse);
  expect((await audit({ repair: true })).stillDifferent).toEqual([]);
  const { rollups, truth } = await responses('globex');
  expect(rollups).toEqual(truth);
});

it('an audit that dies when it has removed a rollup row leaves its hour to be answered from the events', async () => {
  const dying: Warehouse = {
    ...database.warehouse,
    run: async (statement, rows) => {
      await database.warehouse.run(statement, rows);
      if (statement.name === 'remove_rollup') throw new Error('died');
    },
  };
  await damage(versionAboveTheTruth("'acme'"));
  await expect(audit({ repair: true, shards: { ...database.shards, all: [dying] } })).rejects.toThrow('died');
  const window = { startTime: DAY, endTime: MIDNIGHT_AFTER };
  expect(await readDirtyHours(database.warehouse, ['acme'], window)).toEqual([{ bucket: DAY + 10 * MS_PER_HOUR }]);
  await damage('TRUNCATE TABLE dirty_hours');
  expect((await audit({ repair: true })).stillDifferent).toEqual([]);
});

it('an audit finds rollup rows that no event is behind, and versions above the truth, as a restored backup leaves them', async () => {
  await damage(versionAboveTheTruth("arrayJoin(['acme', 'ghost'])"));
  const { differences, stillDifferent } = await audit({ repair: true });
  const changed = new Set(differences.map((each) => each.accountId));
  expect([changed, stillDifferent]).toEqual([new Set(['acme', 'ghost']), []]);
  const { rollups, truth } = await responses('acme');
  expect(rollups).toEqual(truth);
  // The rollup row goes on with late events.
  await store([event({ cost: '7' })]);
  expect((await audit({ repair: false })).differences).toEqual([]);
});

it('an audit finds a version above the truth of a dirty hour, too: its recomputation replaces nothing, and clears the mark', async () => {
  await damage(versionAboveTheTruth("'acme'"));
  await storeEvents(database.warehouse, [event({ at: '2025-10-01T10:00:00Z' })]);
  expect((await audit({ repair: true })).stillDifferent).toEqual([]);
  await recomputeAll(database.warehouse);
  const { rollups, truth } = await responses('acme');
  expect(rollups).toEqual(truth);
});

it('the command audit looks at one account and window when asked to, and says what it found in its exit code', async () => {
  const env = databaseVariables(database.options);
  const audit = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(['audit', '--json', ...args], { env });
    return { code, stderr, ...JSON.parse(stdout) };
  };
  const agrees = 'Compared 2 days. Every rollup row agrees with its events.\n';
  expect(await runCommand(['audit'], { env })).toMatchObject({ code: 0, stdout: agrees });
  await damage("ALTER TABLE usage_hourly DELETE WHERE account_id = 'globex' AND toHour(bucket) = 5");
  expect(await audit('--account', 'acme')).toMatchObject({ code: 0, days: 2, differences: [] });
  expect(await audit('--to', '2025-10-02T05:00:00Z')).toMatchObject({ code: 0 });
  const found = await audit('--from', '2025-10-02T05:00:00Z', '--to', '2025-10-02T06:00:00Z');
  expect(found).toMatchObject({ code: 1, stderr: expect.stringContaining('--repair') });
  expect(found.differences).toContainEqual({
    ...{ grain: 'hourly', bucket: '2025-10-02T05:00:00Z', account: 'globex', part: 'detail' },
    truth: { events: 1, usage: '1', cost: '1' },
    rollup: { events: 0, usage: '0', cost: '0' },
  });
  expect(await audit('--repair')).toMatchObject({ code: 0, stillDifferent: [] });
  expect(await audit()).toMatchObject({ code: 0, differences: [] });
});
