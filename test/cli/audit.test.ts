/** meterline audit, on cells that were damaged in every way that one could think of. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  insertUsageEvents,
  type PricedEvent,
  readMetrics,
  readWatermarks,
  repairCells,
  sealNext,
} from '@meterline/warehouse';
import { event } from '../contract/fixture.js';
import { createTestDatabase, execute, type TestDatabase } from '../stack.js';
import { runCommand } from './run-command.js';

jest.setTimeout(60_000);

const DAY = Date.UTC(2025, 9, 1);
const MIDNIGHT_AFTER = Date.UTC(2025, 9, 3);

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const first = event({ cost: '2' });
  await store([
    first,
    { ...first, revision: 1, cost: 3n * 10n ** 12n },
    event({ at: '2025-10-01T23:59:59.999Z', workspace: 'late', usage: '0.000000001' }),
    event({ at: '2025-10-02T00:00:00Z', resourceUuid: '' }),
    event({ accountId: 'globex', voided: true }),
    event({ accountId: 'globex', at: '2025-10-02T05:00:00Z' }),
  ]);
  while (await sealNext(database.warehouse, MIDNIGHT_AFTER));
});
afterAll(() => database.drop());

/** As a worker does it. */
async function store(events: readonly PricedEvent[]): Promise<void> {
  await insertUsageEvents(database.warehouse, events);
  await repairCells(database.warehouse, events);
}

async function audit(...args: readonly string[]) {
  const { url, database: name } = database.options;
  const env = { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: name };
  const run = await runCommand(['audit', '--json', ...args], { env });
  return { ...run, result: run.stdout === '' ? undefined : JSON.parse(run.stdout) };
}

async function damage(query: string): Promise<void> {
  await execute(database.warehouse, query);
}

/** The account's two days, from cells and from the events alone. */
async function answers(accountId: string) {
  const { hourly, daily } = await readWatermarks(database.warehouse);
  const window = { startTime: DAY, endTime: MIDNIGHT_AFTER };
  const question = { accountId, window, filters: {}, limit: 100 } as const;
  const ask = async (sealed?: { hourly: number; daily: number }) => [
    await readMetrics(database.warehouse, {
      ...question,
      resolution: 'hourly',
      groupBy: ['workspace'],
      ...(sealed && { sealed }),
    }),
    await readMetrics(database.warehouse, {
      ...question,
      resolution: 'daily',
      groupBy: ['resource_uuid'],
      ...(sealed && { sealed }),
    }),
  ];
  return { cells: await ask({ hourly: hourly.sealedUntil, daily: daily.sealedUntil }), truth: await ask() };
}

describe('meterline audit', () => {
  it('finds nothing where nothing is wrong', async () => {
    const { code, result } = await audit();
    expect(result).toEqual({ days: 2, differences: [] });
    expect(code).toBe(0);
  });

  it('says so to people too', async () => {
    const { url, database: name } = database.options;
    const { stdout } = await runCommand(['audit'], { env: { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: name } });
    expect(stdout).toBe('Compared 2 days. Every cell agrees with its events.\n');
  });

  it('looks at one account and window alone when told to', async () => {
    await damage("ALTER TABLE usage_hourly DELETE WHERE account_id = 'globex' AND toHour(bucket) = 5");
    expect((await audit('--account', 'acme')).code).toBe(0);
    expect((await audit('--to', '2025-10-02T05:00:00Z')).code).toBe(0);
    const { code, result, stderr } = await audit('--from', '2025-10-02T05:00:00Z', '--to', '2025-10-02T06:00:00Z');
    expect(code).toBe(1);
    expect(stderr).toContain('--repair');
    expect(result.differences).toContainEqual({
      grain: 'hourly',
      bucket: '2025-10-02T05:00:00Z',
      account: 'globex',
      part: 'detail',
      truth: { events: 1, usage: '1', cost: '1' },
      cell: { events: 0, usage: '0', cost: '0' },
    });
    expect((await audit('--repair')).code).toBe(0);
    expect((await audit()).code).toBe(0);
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
  ])('finds that %s, and repairs it', async (_what, grain, update, parts) => {
    await damage(`ALTER TABLE usage_${grain} ${update} WHERE account_id = 'acme'`);
    const { code, result } = await audit();
    expect(code).toBe(1);
    expect(new Set(result.differences.map((each: { part: string }) => each.part))).toEqual(new Set(parts));
    expect((await audit('--repair')).result.stillDifferent).toEqual([]);
    const { cells, truth } = await answers('acme');
    expect(cells).toEqual(truth);
  });

  it('finds cells that no event is behind, and versions above the truth, as a restored backup leaves them', async () => {
    await damage(`INSERT INTO usage_hourly (account_id, bucket, version, \`summary.workspace\`, \`summary.resource_type\`,
      \`summary.billing_dimension\`, \`summary.usage\`, \`summary.cost\`, \`summary.events\`)
      SELECT if(number = 0, 'ghost', 'acme'), toDateTime('2025-10-01 10:00:00', 'UTC'),
        toUInt128('340282366920938463463374607431768211455'), ['w'], ['sandbox'], ['sandbox_compute_runtime_gbs'], [1], [9], [1]
      FROM numbers(2)`);
    const { code, result } = await audit('--repair');
    const changed = new Set(result.differences.map((each: { account: string }) => each.account));
    expect([code, changed, result.stillDifferent]).toEqual([0, new Set(['acme', 'ghost']), []]);
    const { cells, truth } = await answers('acme');
    expect(cells).toEqual(truth);
    // The cell goes on with late events.
    await store([event({ cost: '7' })]);
    expect((await audit()).code).toBe(0);
  });
});
