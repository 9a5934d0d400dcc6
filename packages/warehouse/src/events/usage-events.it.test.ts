/** Stores events as rows; of several payloads of one event, one counts. */
import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from '@jest/globals';
import { BUILT_IN_DIMENSION_NAMES, BUILT_IN_RESOURCE_TYPES, MS_PER_HOUR } from '@meterline/catalog';
import fc from 'fast-check';
import { pricedEvent } from '../../../../test/harness/events.js';
import { execute, select } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { insertRows } from '../clickhouse/connection.js';
import { EventRows, hoursBefore, Names, type PricedEvent } from './event-rows.js';
import { insertUsageEvents, prepareUsageEvents } from './usage-events.js';

const NOON = Date.UTC(2025, 9, 1, 12);
/** The largest number of Decimal(38). */
const MOST = 10n ** 38n - 1n;

const database = testDatabase();
beforeAll(() => execute(database.warehouse, 'CREATE TABLE by_json AS usage_events'));

type Payload = Partial<PricedEvent>;
const EVENT = pricedEvent({ resourceUuid: 'sbx-1', usage: 12_500_000_000n, timestamp: NOON, cost: 143_750_000n });

/** Stores payloads of the event, for an account of its own. */
async function stored(payloads: readonly Payload[], accountId: string = randomUUID()): Promise<string> {
  await insertUsageEvents(
    database.warehouse,
    payloads.map((payload) => ({ ...EVENT, accountId, ...payload })),
  );
  return accountId;
}

function rowsOf<Row = unknown>(accountId: string, columns: string, more = ''): Promise<Row[]> {
  const query = `SELECT ${columns} FROM usage_events ${more} WHERE account_id = {accountId: String}`;
  return select<Row>(database.warehouse, query, { accountId });
}

/**
 * Lets the payloads of each case arrive in every order, an event for each order, each arrival an insert of its own.
 * @returns by title, the payloads that readers see, with the number of events that have them: before parts are merged, and afterwards
 */
async function winners(cases: readonly (readonly [title: string, payloads: readonly Payload[]])[]) {
  const run = `${randomUUID()} `;
  const arrivals = cases.flatMap(([title, payloads]) =>
    permutations(payloads).map((order) => ({ accountId: run + title, eventId: randomUUID(), order })),
  );
  for (let step = 0; arrivals.some(({ order }) => order.length > step); step += 1) {
    const arriving = arrivals.flatMap(({ order: { [step]: payload }, ...event }) =>
      payload ? [{ ...EVENT, ...event, ...payload }] : [],
    );
    await insertUsageEvents(database.warehouse, arriving);
  }
  const left = async () => {
    const query = `
SELECT account_id, workspace, usage, revision, voided, price_revision, price_book, cost, count() AS events
FROM usage_events FINAL WHERE startsWith(account_id, {run: String}) GROUP BY ALL`;
    const rows = await select<{ account_id: string }>(database.warehouse, query, { run });
    const ofCase = (title: string) =>
      rows.flatMap(({ account_id, ...row }) => (account_id === run + title ? [row] : []));
    return Object.fromEntries(cases.map(([title]) => [title, ofCase(title)]));
  };
  const unmerged = await left();
  await execute(database.warehouse, 'OPTIMIZE TABLE usage_events FINAL');
  return { unmerged, merged: await left() };
}

function permutations<T>(list: readonly T[]): T[][] {
  if (list.length === 0) return [[]];
  return list.flatMap((first, index) =>
    permutations([...list.slice(0, index), ...list.slice(index + 1)]).map((rest) => [first, ...rest]),
  );
}

const resend: Payload = { priceBook: 7, cost: 2n };
const correction: Payload = { revision: 1, usage: 1n, cost: 1n };
const repriced: Payload = { revision: 1, usage: 1n, cost: 9n, priceRevision: 1, priceBook: 8 };
const voided: Payload = { revision: 2, voided: true };

const WINNERS: readonly [title: string, payloads: Payload[], winner: Payload][] = [
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
];

it('one payload of an event wins in whatever order several arrive', async () => {
  const { unmerged, merged } = await winners(WINNERS.map(([title, payloads]) => [title, payloads] as const));
  const expected = WINNERS.map(([title, payloads, winner]) => {
    const { workspace, usage, revision, voided, priceRevision, priceBook, cost } = { ...EVENT, ...winner };
    const row = {
      ...{ workspace, revision, voided, price_revision: priceRevision, price_book: priceBook },
      ...{ usage: decimal(usage, 9), cost: decimal(cost, 12), events: String(permutations(payloads).length) },
    };
    return [title, [row]];
  });
  expect(unmerged).toEqual(Object.fromEntries(expected));
  expect(merged).toEqual(unmerged);
});

it('of contradicting payloads with one revision the same one wins in whatever order they arrive', async () => {
  // The hash of the content decides, and that does not depend on the event: all orders have one and the same winner.
  const { unmerged, merged } = await winners([
    ['workspace', ['a', 'b', 'c', 'd'].map((workspace) => ({ workspace }))],
    ['usage', [1n, 2n, 3n, 4n].map((usage) => ({ usage, cost: usage }))],
    ['void', [{}, { voided: true }]],
    ['several fields', [{}, { workspace: 'b' }, { usage: 3n, cost: 3n }, { voided: true }]],
  ]);
  const counts = Object.entries(unmerged).map(([title, rows]) => [title, rows.length]);
  expect(Object.fromEntries(counts)).toEqual({ workspace: 1, usage: 1, void: 1, 'several fields': 1 });
  expect(merged).toEqual(unmerged);
});

it('the version of a row leaves 32 bits of headroom and depends on every field that may differ', async () => {
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
  const accountId = await stored(fields.map((changes) => ({ eventId: randomUUID(), ...changes })));
  const columns = 'uniqExact(row_version) AS distinct, max(row_version) < bitShiftLeft(toUInt128(1), 96) AS fits';
  expect(await rowsOf(accountId, columns)).toEqual([{ distinct: String(fields.length), fits: 1 }]);
});

const MONTH = Date.UTC(2025, 9, 1);
it.each<[string, number, Payload[]]>([
  ['none', 0, []],
  ['of one id in an hour', 1, [{}, { timestamp: NOON + MS_PER_HOUR - 1, workspace: 'other' }]],
  ['of one id in several UTC hours', 3, [{}, { timestamp: NOON + MS_PER_HOUR }, { timestamp: NOON - 1 }]],
  ['of one id on both sides of the end of a month', 2, [{ timestamp: MONTH - 1 }, { timestamp: MONTH }]],
  ['with different ids', 2, [{}, { eventId: randomUUID() }]],
])('payloads %s are %i events in each account', async (_, events, payloads) => {
  const accounts = [await stored(payloads), await stored(payloads)];
  for (const accountId of accounts) expect(await rowsOf(accountId, '1', 'FINAL')).toHaveLength(events);
});

const LENGTHS = [0, 1, 41, 42, 43, 44, 126, 127, 128, 129, 300, 16_383, 16_384, 70_000];
const NAMES = [
  ...['a', 'é', '€', '😀'].flatMap((character) => LENGTHS.map((length) => character.repeat(length))),
  ...[`'"\\`, '{a: String}', '%s', "'; DROP TABLE a", 'a\nb\tc\0d', '\u2028', 'e\u0301'],
];
const names = fc.oneof(fc.constantFrom('', 'a', 'b', '名前'), fc.string({ unit: 'binary', maxLength: 300 }));
const amounts = fc.oneof(
  fc.constantFrom(0n, 1n, -1n, MOST, -MOST, 2n ** 32n, 2n ** 64n - 1n, 2n ** 64n, -(2n ** 64n)),
  fc.bigInt({ min: -MOST, max: MOST }),
  fc.bigInt({ min: 0n, max: 2n ** 53n }),
);
const numbers = fc.oneof(fc.constantFrom(0, 1, 65_535), fc.nat(65_535));
/** Any event of some hundred months. */
const anyEvent: fc.Arbitrary<PricedEvent> = fc.record({
  eventId: fc.uuid(),
  accountId: names,
  workspace: names,
  resourceType: fc.constantFrom(...BUILT_IN_RESOURCE_TYPES),
  resourceName: names,
  resourceUuid: names,
  billingDimension: fc.constantFrom(...BUILT_IN_DIMENSION_NAMES),
  usage: amounts,
  timestamp: fc.oneof(fc.constantFrom(0, 2 ** 32 - 1, 2 ** 32), fc.integer({ min: 0, max: Date.UTC(2105, 0) })),
  revision: numbers,
  voided: fc.boolean(),
  cost: amounts,
  priceRevision: numbers,
  priceBook: numbers,
});

/** A row as ClickHouse reads it by itself. */
function jsonRow(event: PricedEvent) {
  return {
    account_id: event.accountId,
    event_id: event.eventId,
    timestamp: new Date(event.timestamp).toISOString().replace('T', ' ').replace('Z', ''),
    workspace: event.workspace,
    resource_type: event.resourceType,
    resource_name: event.resourceName,
    resource_uuid: event.resourceUuid,
    billing_dimension: event.billingDimension,
    usage: decimal(event.usage, 9),
    revision: event.revision,
    voided: event.voided ? 1 : 0,
    cost: decimal(event.cost, 12),
    price_revision: event.priceRevision,
    price_book: event.priceBook,
  };
}

function decimal(value: bigint, scale: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`.replace(/\.?0+$/, '');
}

it('a block of events is stored as ClickHouse stores the same rows from JSON, with the same versions and hours', async () => {
  await execute(database.warehouse, 'TRUNCATE TABLE usage_events');
  const events = [...fc.sample(anyEvent, 400), ...NAMES.map((resourceName) => pricedEvent({ resourceName }))];
  const [first, second] = [new Names(), new Names()];
  // Jobs of one Names, and of two.
  const parts = [
    EventRows.of(events.slice(0, 100), first),
    EventRows.of(events.slice(100, 101), first),
    EventRows.of([], second),
    EventRows.of(events.slice(101), second),
  ];
  await prepareUsageEvents(parts)(database.warehouse);
  await insertRows(database.warehouse, 'by_json', events.map(jsonRow));
  const all = (table: string) =>
    select(
      database.warehouse,
      `SELECT * REPLACE (toUnixTimestamp64Milli(timestamp) AS timestamp, toString(usage) AS usage, toString(cost) AS cost),
         event_hour, toString(row_version) AS version
       FROM ${table} ORDER BY event_id`,
    );
  expect(await all('usage_events')).toEqual(await all('by_json'));
});

it.each([256, 257, 65_536, 65_537])('a block of events may have %d names in a column', async (count) => {
  const accountId = randomUUID();
  const rows = new EventRows(count + 1, new Names());
  // The last name is the first again.
  for (let name = 0; name <= count; name += 1) {
    const eventId = `00000000-0000-7000-8000-${name.toString(16).padStart(12, '0')}`;
    const event = { ...EVENT, accountId, eventId, resourceName: `name-${name % count}` };
    rows.add(event, event, 0);
  }
  await prepareUsageEvents([rows])(database.warehouse);
  const columns = `count() AS rows, uniqExact(resource_name) AS names, countIf(resource_name = 'name-0') AS first`;
  expect(await rowsOf(accountId, columns)).toEqual([{ rows: String(count + 1), names: String(count), first: '2' }]);
});

it('rows give back every event as it was added, and those that are picked', () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 5 }), fc.boolean(), (events, areUpper) => {
      const written = events.map((event) => ({
        ...event,
        eventId: areUpper ? event.eventId.toUpperCase() : event.eventId,
      }));
      const rows = EventRows.of(written, new Names());
      const picked = rows.pick([...events.keys()].reverse());
      for (const [row, event] of events.entries()) {
        const last = events.length - 1 - row;
        expect([rows.eventOf(row), picked.eventOf(last), picked.positionOf(last)]).toEqual([event, event, row]);
      }
      const earliest = Math.min(...events.map(({ timestamp }) => timestamp));
      expect([rows.earliest, picked.earliest]).toEqual([earliest, earliest]);
    }),
  );
});

it('rows say in which hours before an instant accounts have events', () => {
  const [one, other] = [new Names(), new Names()];
  const event = (accountId: string, timestamp: number) => pricedEvent({ accountId, timestamp });
  const [a, b] = [event('a', 5), event('b', MS_PER_HOUR - 1)];
  const parts = [
    EventRows.of([a, b, event('a', 7), event('a', MS_PER_HOUR)], one),
    EventRows.of([event('b', 0), event('a', 2 * MS_PER_HOUR + 1)], one),
    EventRows.of([event('c', 9 * MS_PER_HOUR), event('a', 3 * MS_PER_HOUR)], other),
    EventRows.of([event('d', 10 * MS_PER_HOUR)], other),
  ];
  expect(hoursBefore(10 * MS_PER_HOUR, parts)).toEqual([
    { accountId: 'a', hours: [0, 1, 2, 3].map((hour) => hour * MS_PER_HOUR) },
    { accountId: 'b', hours: [0] },
    { accountId: 'c', hours: [9 * MS_PER_HOUR] },
  ]);
  expect(hoursBefore(MS_PER_HOUR, parts).map(({ accountId }) => accountId)).toEqual(['a', 'b']);
  expect(hoursBefore(0, parts)).toEqual([]);
});

it.each<[string, Payload]>([
  ...[-1, 65_536].map((revision): [string, Payload] => ['out of range', { revision }]),
  ['out of range', { priceRevision: 65_536 }],
  ['out of range', { priceBook: 65_536 }],
  ['out of range', { usage: 2n ** 127n }],
  ['out of range', { cost: -(2n ** 127n) - 1n }],
  ...[
    '',
    '0190c5e4-7b1a-7def-8abc-0123456789a',
    '0190c5e4-7b1a-7def-8abc-0123456789abc',
    '0190c5e4-7b1a-7def-8abc-0123456789ag',
    '0190c5e4-7b1a-7def-8abc-0123456789aü',
    '0190c5e4-7b1a-7def-8abc_0123456789ab',
    '0190c5e4-7b1a-7def-8ab-c0123456789ab',
    '-190c5e4-7b1a-7def-8abc-0123456789ab',
  ].map((eventId): [string, Payload] => ['is not a UUID', { eventId }]),
])('event rows throw an error for a value that %s: %p', (message, changes) => {
  expect(() => EventRows.of([pricedEvent(changes)], new Names())).toThrow(message);
  expect(() => new EventRows(0, new Names()).add(pricedEvent(), pricedEvent(), 0)).toThrow(
    'the table is full: its capacity is 0 events',
  );
});

it('names are large when there are many of them, or long ones', () => {
  const [many, long] = [new Names(), new Names()];
  for (let name = 0; name < 65_536; name += 1) many.numberOf(String(name));
  for (let name = 0; name < 16_000; name += 1) long.numberOf(`${name}`.padEnd(256));
  expect([new Names().isLarge, many.isLarge, long.isLarge]).toEqual([false, true, true]);
  expect(() => many.textOf(70_000)).toThrow('no text has the number 70000');
});
