import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { BILLING_DIMENSIONS, RESOURCE_TYPES } from '@meterline/catalog';
import fc from 'fast-check';
import { pricedEvent } from '../../../../test/harness/events.js';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { insertRows } from '../clickhouse/connection.js';
import { EventRows, hoursBefore, type PricedEvent } from './event-rows.js';
import { Names } from './names.js';
import { prepareUsageEvents } from './usage-events.js';

const HOUR = 3_600_000;
/** Of Decimal(38). */
const MOST = 10n ** 38n - 1n;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await execute(database.warehouse, 'CREATE TABLE by_json AS usage_events');
});
afterAll(() => database.drop());

const COLUMNS = `account_id, event_id, toUnixTimestamp64Milli(timestamp) AS timestamp, event_hour, workspace, resource_type,
  resource_name, resource_uuid, billing_dimension, toString(usage) AS usage, revision, voided, toString(cost) AS cost,
  price_revision, price_book, toString(row_version) AS row_version`;

/** All of them, those that the table computes included, in the order of their ids. */
function stored(table: string): Promise<unknown[]> {
  return select(database.warehouse, `SELECT ${COLUMNS} FROM ${table} ORDER BY event_id`);
}

/** Stores the events as blocks, and once more as JSON, which ClickHouse reads by itself. */
async function storeBothWays(parts: readonly EventRows[], events: readonly PricedEvent[]): Promise<void> {
  for (const table of ['usage_events', 'by_json']) await execute(database.warehouse, `TRUNCATE TABLE ${table}`);
  await prepareUsageEvents(parts)(database.warehouse);
  const rows = events.map((event) => ({
    account_id: event.accountId,
    event_id: event.eventId,
    timestamp: new Date(event.timestamp).toISOString().replace('T', ' ').replace('Z', ''),
    workspace: event.workspace,
    resource_type: event.resourceType,
    resource_name: event.resourceName,
    resource_uuid: event.resourceUuid,
    billing_dimension: event.billingDimension,
    usage: scaled(event.usage, 9),
    revision: event.revision,
    voided: event.voided ? 1 : 0,
    cost: scaled(event.cost, 12),
    price_revision: event.priceRevision,
    price_book: event.priceBook,
  }));
  await insertRows(database.warehouse, 'by_json', rows);
}

function scaled(value: bigint, scale: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

const names = fc.oneof(fc.constantFrom('', 'a', 'b', 'é', '名前', '😀'.repeat(64)), fc.string({ unit: 'grapheme' }));
const amounts = fc.oneof(
  fc.constantFrom(0n, 1n, -1n, MOST, -MOST, 2n ** 32n, 2n ** 64n - 1n, 2n ** 64n, -(2n ** 64n)),
  fc.bigInt({ min: -MOST, max: MOST }),
  fc.bigInt({ min: 0n, max: 2n ** 53n }),
);
const numbers = fc.oneof(fc.constantFrom(0, 1, 65_535), fc.nat(65_535));
const anyEvent: fc.Arbitrary<PricedEvent> = fc.record({
  eventId: fc.uuid(),
  accountId: names,
  workspace: names,
  resourceType: fc.constantFrom(...RESOURCE_TYPES),
  resourceName: names,
  resourceUuid: names,
  billingDimension: fc.constantFrom(...BILLING_DIMENSIONS),
  usage: amounts,
  timestamp: fc.oneof(fc.constantFrom(0, 2 ** 32 - 1, 2 ** 32), fc.integer({ min: 0, max: Date.UTC(2105, 0) })),
  revision: numbers,
  voided: fc.boolean(),
  cost: amounts,
  priceRevision: numbers,
  priceBook: numbers,
});

describe('a block of usage events', () => {
  it('is stored as ClickHouse stores the same rows from JSON, with the same versions and hours', async () => {
    const events = fc.sample(anyEvent, 400);
    const [first, second] = [new Names(), new Names()];
    // Jobs of one Names, and of two.
    const parts = [
      EventRows.of(events.slice(0, 100), first),
      EventRows.of(events.slice(100, 101), first),
      EventRows.of([], second),
      EventRows.of(events.slice(101), second),
    ];
    await storeBothWays(parts, events);
    expect(await stored('usage_events')).toEqual(await stored('by_json'));
  });

  it.each([256, 257, 65_536, 65_537])('may have %d names in a column', async (count) => {
    const names = new Names();
    const rows = new EventRows(count + 1, names);
    const accountId = randomUUID();
    for (let name = 0; name <= count; name += 1) {
      // The last is the first again.
      rows.add(pricedEvent({ accountId, resourceName: `name-${name % count}` }), 0);
    }
    await prepareUsageEvents([rows])(database.warehouse);
    const found = await select(
      database.warehouse,
      `SELECT count() AS rows, uniqExact(resource_name) AS names, countIf(resource_name = 'name-0') AS first
       FROM usage_events WHERE account_id = {accountId: String}`,
      { accountId },
    );
    expect(found).toEqual([{ rows: String(count + 1), names: String(count), first: '2' }]);
  });
});

describe('rows of events', () => {
  it('give back every event as it was added, and those that are picked', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 5 }), fc.boolean(), (events, areUpper) => {
        const written = events.map((event) => ({
          ...event,
          eventId: areUpper ? event.eventId.toUpperCase() : event.eventId,
        }));
        const rows = EventRows.of(written, new Names());
        const picked = rows.pick([...events.keys()].reverse());
        for (const [row, event] of events.entries()) {
          expect(rows.eventOf(row)).toEqual(event);
          expect(picked.eventOf(events.length - 1 - row)).toEqual(event);
          expect(picked.positionOf(events.length - 1 - row)).toBe(row);
        }
        const earliest = Math.min(...events.map(({ timestamp }) => timestamp));
        expect([rows.earliest, picked.earliest]).toEqual([earliest, earliest]);
      }),
    );
  });

  it('say in which hours before an instant accounts have events', () => {
    const [one, other] = [new Names(), new Names()];
    const event = (accountId: string, timestamp: number) => pricedEvent({ accountId, timestamp });
    const parts = [
      EventRows.of([event('a', 5), event('b', HOUR - 1), event('a', 7), event('a', HOUR)], one),
      EventRows.of([event('b', 0), event('a', 2 * HOUR + 1)], one),
      EventRows.of([event('c', 9 * HOUR), event('a', 3 * HOUR)], other),
      EventRows.of([event('d', 10 * HOUR)], other),
    ];
    expect(hoursBefore(10 * HOUR, parts)).toEqual([
      { accountId: 'a', hours: [0, HOUR, 2 * HOUR, 3 * HOUR] },
      { accountId: 'b', hours: [0] },
      { accountId: 'c', hours: [9 * HOUR] },
    ]);
    expect(hoursBefore(HOUR, parts).map(({ accountId }) => accountId)).toEqual(['a', 'b']);
    expect(hoursBefore(0, parts)).toEqual([]);
  });

  it.each([
    ['a revision below 0', { revision: -1 }],
    ['a revision above 65,535', { revision: 65_536 }],
    ['a price revision above 65,535', { priceRevision: 65_536 }],
    ['a price book above 65,535', { priceBook: 65_536 }],
    ['a usage above 2^127 − 1', { usage: 2n ** 127n }],
    ['a cost below −2^127', { cost: -(2n ** 127n) - 1n }],
  ])('refuse %s', (_, changes) => {
    expect(() => EventRows.of([pricedEvent(changes)], new Names())).toThrow('out of range');
  });

  it.each([
    '',
    '0190c5e4-7b1a-7def-8abc-0123456789a',
    '0190c5e4-7b1a-7def-8abc-0123456789abc',
    '0190c5e4-7b1a-7def-8abc-0123456789ag',
    '0190c5e4-7b1a-7def-8abc-0123456789aü',
    '0190c5e4-7b1a-7def-8abc_0123456789ab',
    '0190c5e4-7b1a-7def-8ab-c0123456789ab',
    '-190c5e4-7b1a-7def-8abc-0123456789ab',
  ])('refuse %j for an id', (eventId) => {
    expect(() => EventRows.of([pricedEvent({ eventId })], new Names())).toThrow('is not a UUID');
  });

  it('refuse an event more than there is room for', () => {
    expect(() => new EventRows(0, new Names()).add(pricedEvent(), 0)).toThrow('there is room for 0 events only');
  });
});

it('names are large when there are many of them, or long ones', () => {
  const [many, long] = [new Names(), new Names()];
  for (let name = 0; name < 65_536; name += 1) many.numberOf(String(name));
  for (let name = 0; name < 16_000; name += 1) long.numberOf(`${name}`.padEnd(256));
  expect([new Names().isLarge, many.isLarge, long.isLarge]).toEqual([false, true, true]);
  expect(() => many.textOf(70_000)).toThrow('no text has the number 70000');
});
