import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { pricedEvent } from '../../../../test/harness/events.js';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { readMetrics } from '../metrics/read.js';
import type { PricedEvent } from './event-rows.js';
import { insertUsageEvents } from './usage-events.js';

const HOUR = 3_600_000;
const NOON = Date.UTC(2025, 9, 1, 12);
/** Every part is written through to the disk, which takes long where the disk is busy. */
const PATIENCE_MS = 30_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const EVENT = pricedEvent({
  eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
  resourceUuid: 'sbx-1',
  usage: 12_500_000_000n,
  timestamp: NOON,
  cost: 143_750_000n,
});

type Payload = Partial<PricedEvent>;

function permutations<T>(list: readonly T[]): T[][] {
  if (list.length === 0) return [[]];
  return list.flatMap((first, index) =>
    permutations([...list.slice(0, index), ...list.slice(index + 1)]).map((rest) => [first, ...rest]),
  );
}

function rows<Row>(query: string, accountId: string): Promise<Row[]> {
  return select<Row>(database.warehouse, query, { accountId });
}

/**
 * Lets the payloads of one event arrive in every order, an event for each order, each arrival an insert of its own.
 * @returns what is left of the events in the end: the distinct winners, before and after the parts are merged
 */
async function winners(payloads: readonly Payload[]): Promise<{ unmerged: unknown[]; merged: unknown[] }> {
  const accountId = randomUUID();
  const arrivals = permutations(payloads).map((order) => ({ eventId: randomUUID(), order }));
  for (const step of payloads.keys()) {
    await insertUsageEvents(
      database.warehouse,
      arrivals.map(({ eventId, order }) => ({ ...EVENT, accountId, eventId, ...order[step] })),
    );
  }
  const left = () =>
    rows(
      `SELECT workspace, usage, revision, voided, price_revision, price_book, cost, count() AS events
       FROM usage_events FINAL WHERE account_id = {accountId: String} GROUP BY ALL`,
      accountId,
    );
  const unmerged = await left();
  await execute(database.warehouse, 'OPTIMIZE TABLE usage_events FINAL');
  return { unmerged, merged: await left() };
}

describe('of several payloads of one event, in whatever order they arrive,', () => {
  const resend: Payload = { priceBook: 7, cost: 2n };
  const correction: Payload = { revision: 1, usage: 1n, cost: 1n };
  const repriced: Payload = { revision: 1, usage: 1n, cost: 9n, priceRevision: 1, priceBook: 8 };
  const voided: Payload = { revision: 2, voided: true };

  it.each<[string, Payload[], Payload]>([
    ['the same sent again changes nothing', [{}, {}], {}],
    ['the higher revision wins', [{}, correction], correction],
    [
      'a revision wins though it is priced with a newer book',
      [{}, { ...correction, priceBook: 3 }],
      { ...correction, priceBook: 3 },
    ],
    ['the older price book wins, so that a resend changes no price', [{}, resend], {}],
    ['the oldest of four price books wins', [3, 1, 65_535, 2].map((priceBook) => ({ priceBook })), { priceBook: 1 }],
    ['a new price wins over an older price book', [correction, repriced], repriced],
    ['a revision wins over any new price', [{ priceRevision: 65_535 }, correction], correction],
    ['a void wins over what it voids, re-priced or not', [{}, correction, repriced, voided], voided],
    ['a revision after a void counts again', [{}, voided, { revision: 3 }], { revision: 3 }],
    [
      'the highest revision there is wins',
      [{ revision: 65_535 }, { revision: 65_534, priceRevision: 65_535 }, {}],
      { revision: 65_535 },
    ],
    ['one of five wins', [{}, resend, correction, repriced, voided], voided],
  ])(
    '%s',
    async (_, payloads, winner) => {
      const expected = { ...EVENT, ...winner };
      const { unmerged, merged } = await winners(payloads);
      expect(unmerged).toEqual([
        {
          workspace: expected.workspace,
          usage: decimal(expected.usage, 9),
          revision: expected.revision,
          voided: expected.voided,
          price_revision: expected.priceRevision,
          price_book: expected.priceBook,
          cost: decimal(expected.cost, 12),
          events: String(permutations(payloads).length),
        },
      ]);
      expect(merged).toEqual(unmerged);
    },
    PATIENCE_MS,
  );

  it.each<[string, Payload[]]>([
    ['workspace', ['a', 'b', 'c', 'd'].map((workspace) => ({ workspace }))],
    ['usage', [1n, 2n, 3n, 4n].map((usage) => ({ usage, cost: usage }))],
    ['void', [{}, { voided: true }]],
    ['several fields', [{}, { workspace: 'b' }, { usage: 3n, cost: 3n }, { voided: true }]],
  ])(
    'with one revision but another %s, always the same one wins',
    async (_, payloads) => {
      // The hash of the content decides, and that does not depend on the event: all orders have one and the same winner.
      const { unmerged, merged } = await winners(payloads);
      expect(unmerged).toHaveLength(1);
      expect(merged).toEqual(unmerged);
    },
    PATIENCE_MS,
  );
});

function decimal(scaled: bigint, scale: number): string {
  const digits = scaled.toString().padStart(scale + 1, '0');
  return `${digits.slice(0, -scale)}.${digits.slice(-scale)}`.replace(/\.?0+$/, '');
}

describe('row_version', () => {
  it('leaves 32 bits of headroom and tells every field that may differ', async () => {
    const accountId = randomUUID();
    const fields: Payload[] = [
      { timestamp: NOON + 1 },
      { workspace: 'w' },
      { resourceType: 'agent' },
      { resourceName: 'n' },
      { resourceUuid: 'u' },
      { billingDimension: 'sandbox_image_storage_gbs' },
      { usage: 1n },
      { voided: true },
      { revision: 65_535, priceRevision: 65_535 },
      {},
    ];
    const events = fields.map((changes) => ({ ...EVENT, accountId, eventId: randomUUID(), ...changes }));
    await insertUsageEvents(database.warehouse, events);
    const [found] = await rows<{ distinct: string; fits: number }>(
      `SELECT uniqExact(row_version) AS distinct, max(row_version) < bitShiftLeft(toUInt128(1), 96) AS fits
       FROM usage_events WHERE account_id = {accountId: String}`,
      accountId,
    );
    expect(found).toEqual({ distinct: String(fields.length), fits: 1 });
  });

  it('is the same for the same content, from any sender at any time', async () => {
    const accountId = randomUUID();
    for (const eventId of [randomUUID(), randomUUID()]) {
      await insertUsageEvents(database.warehouse, [{ ...EVENT, accountId, eventId }]);
    }
    const found = await rows(
      'SELECT DISTINCT row_version FROM usage_events WHERE account_id = {accountId: String}',
      accountId,
    );
    expect(found).toHaveLength(1);
  });
});

describe('the identity of an event', () => {
  async function count(changes: readonly Payload[]): Promise<number> {
    const accountId = randomUUID();
    await insertUsageEvents(
      database.warehouse,
      changes.map((change) => ({ ...EVENT, accountId, ...change })),
    );
    return (await rows('SELECT 1 FROM usage_events FINAL WHERE account_id = {accountId: String}', accountId)).length;
  }

  const month = Date.UTC(2025, 9, 1);
  it.each<[string, number, Payload[]]>([
    ['one within an hour', 1, [{}, { timestamp: NOON + HOUR - 1, workspace: 'other' }]],
    ['another in another UTC hour', 3, [{}, { timestamp: NOON + HOUR }, { timestamp: NOON - 1 }]],
    ['another over the edge of a month', 2, [{ timestamp: month - 1 }, { timestamp: month }]],
    ['another with another id', 2, [{}, { eventId: randomUUID() }]],
  ])('is %s', async (_, events, changes) => {
    expect(await count(changes)).toBe(events);
  });

  it('is another in another account', async () => {
    const accounts = [randomUUID(), randomUUID()];
    await insertUsageEvents(
      database.warehouse,
      accounts.map((accountId) => ({ ...EVENT, accountId })),
    );
    const query = 'SELECT 1 FROM usage_events FINAL WHERE account_id = {accountId: String}';
    for (const accountId of accounts) expect(await rows(query, accountId)).toHaveLength(1);
  });
});

describe('a revision', () => {
  it('that changes a filtered value does not bring back the event under its old value', async () => {
    const accountId = randomUUID();
    await insertUsageEvents(database.warehouse, [{ ...EVENT, accountId, workspace: 'old' }]);
    await insertUsageEvents(database.warehouse, [{ ...EVENT, accountId, workspace: 'new', revision: 1 }]);
    const window = { startTime: NOON, endTime: NOON + HOUR / 2 };
    const query = { accounts: [accountId], window, resolution: 'hourly', groupBy: [], limit: 1 } as const;
    for (const [workspace, usage] of [
      ['old', '0'],
      ['new', '12.5'],
    ] as const) {
      const answer = await readMetrics(database.warehouse, { ...query, filters: { workspace: [workspace] } });
      expect(answer.totals?.usage).toBe(usage);
    }
  });
});

it(
  'an insert may hold events of more months than the 100 partitions that a server allows by itself',
  async () => {
    const accountId = randomUUID();
    const events = Array.from({ length: 101 }, (_, month) => ({
      ...EVENT,
      accountId,
      timestamp: Date.UTC(1970, month),
    }));
    await insertUsageEvents(database.warehouse, events);
    expect(await rows('SELECT 1 FROM usage_events WHERE account_id = {accountId: String}', accountId)).toHaveLength(
      101,
    );
  },
  PATIENCE_MS,
);

it('an insert may hold names of every length and script', async () => {
  const lengths = [0, 1, 41, 42, 43, 44, 126, 127, 128, 129, 300, 16_383, 16_384, 70_000];
  const names = [
    ...['a', 'é', '€', '😀'].flatMap((character) => lengths.map((length) => character.repeat(length))),
    ...[`'"\\`, '{a: String}', '%s', "'; DROP TABLE a", 'a\nb\tc\0d', '\u2028', 'e\u0301'],
    ...fc.sample(fc.string({ unit: 'binary', maxLength: 300 }), 200),
  ];
  const accountId = randomUUID();
  const events = names.map((resourceName, ms) => ({ ...EVENT, accountId, resourceName, timestamp: NOON + ms }));
  await insertUsageEvents(
    database.warehouse,
    events.map((event) => ({ ...event, eventId: randomUUID() })),
  );
  const query = 'SELECT resource_name FROM usage_events WHERE account_id = {accountId: String} ORDER BY timestamp';
  expect((await rows<{ resource_name: string }>(query, accountId)).map((row) => row.resource_name)).toEqual(names);
});

it('an insert may hold no events', async () => {
  await expect(insertUsageEvents(database.warehouse, [])).resolves.toBeUndefined();
});
