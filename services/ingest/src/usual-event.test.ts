import { describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, DEFAULT_PRICE_BOOK_FILE, eventsOfJob, PriceBook, parseJson } from '@meterline/catalog';
import { EventRows, encodeUsageEvents, Names } from '@meterline/warehouse';
import fc from 'fast-check';
import { JobMaker, rawData } from '../../../test/attack/job-cases.js';
import { SeededRandom } from '../../../test/faults/seeded-random.js';
import { SANDBOX_EVENT } from '../../../test/sandbox-event.js';
import { priceEvent } from './intake.js';
import { addUsualEvent } from './usual-event.js';

const RUNS = process.env.METERLINE_TEST_SHORT ? 500 : 2_000;
const NOW = Date.UTC(2026, 5, 1);
const EVENT = SANDBOX_EVENT;

/** With prices that change, come late, and differ for an account. */
const BUSY_BOOK = new PriceBook({
  ...DEFAULT_PRICE_BOOK_FILE,
  version: 65_535,
  prices: [
    ...DEFAULT_PRICE_BOOK_FILE.prices.filter(({ billingDimension }) => billingDimension !== 'volume_storage_gbs'),
    { billingDimension: 'volume_storage_gbs', effectiveFrom: '2026-05-01T00:00:00Z', amount: '7', per: '0.0003' },
    {
      billingDimension: 'sandbox_compute_runtime_gbs',
      effectiveFrom: '2026-05-01T00:00:00Z',
      amount: '0.123456789012345678',
    },
  ],
  overrides: [
    {
      accountId: 'acme',
      billingDimension: 'sandbox_compute_runtime_gbs',
      effectiveFrom: '2026-04-01T00:00:00Z',
      amount: '1',
      per: '3',
    },
  ],
});

/** Of all checks, so that what one left behind would show in the next. */
const names = new Names();

/** Gives the event to both ways and compares them. @returns whether it took the short one */
function takesShortWay(input: unknown, book: PriceBook): boolean {
  const rows = new EventRows(2, names);
  const before = names.size;
  const isUsual = addUsualEvent(input, 7, { book, now: NOW, rows });
  const priced = priceEvent(input, book, NOW);
  if (!isUsual) {
    expect(rows.length).toBe(0);
    if (!priced.ok) return false;
    rows.add(priced.value, 7);
  }
  if (!priced.ok) throw new Error(`it was taken, and refused: ${priced.message} ${JSON.stringify(input)}`);
  expect(rows.eventOf(0)).toEqual(priced.value);
  expect(rows.earliest).toBe(priced.value.timestamp);
  const expected = EventRows.of([priced.value], new Names());
  expect(encodeUsageEvents([rows]).equals(encodeUsageEvents([expected]))).toBe(true);
  for (let number = before; number < names.size; number += 1) expect(names.textOf(number)).not.toBe('');
  return isUsual;
}

describe('the short way of an event gives the same row as the long one, or leaves it alone:', () => {
  it.each([
    ['the example book', DEFAULT_PRICE_BOOK],
    ['a book with changes and overrides', BUSY_BOOK],
  ])('events that fit, that nearly fit, and hostile ones, with %s', (_, book) => {
    const random = new SeededRandom(15);
    const maker = new JobMaker(random, { accounts: ['acme', 'ünï', 'zeta'], now: NOW });
    let [usual, all] = [0, 0];
    for (let job = 0; job < 80; job += 1) {
      const events = eventsOfJob(parseJson(JSON.stringify(maker.data(20))));
      for (const event of events.ok ? events.value : []) {
        all += 1;
        if (takesShortWay(event, book)) usual += 1;
      }
    }
    // About a third is spoiled.
    expect(usual / all).toBeGreaterThan(0.4);
  });

  it('data that no JSON writer gives', () => {
    for (const text of rawData(EVENT)) {
      const events = eventsOfJob(parseJson(String(text)));
      for (const event of events.ok ? events.value : []) takesShortWay(event, DEFAULT_PRICE_BOOK);
    }
  });

  it('usages on both sides of what doubles hold, in digits and as numbers', () => {
    const digits = fc
      .tuple(
        fc.integer({ min: 1, max: 17 }),
        fc.integer({ min: -1, max: 11 }),
        fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 17, maxLength: 17 }),
      )
      .map(([length, decimals, text]) => {
        const point = length - decimals;
        return decimals < 0 || point < 0
          ? text.slice(0, length)
          : `${text.slice(0, point)}.${text.slice(point, length)}`;
      });
    const usage = fc.oneof(digits, digits.map(Number), fc.double(), fc.nat(), fc.maxSafeNat(), fc.string());
    const dimension = fc.constantFrom(
      { resourceType: 'sandbox', billingDimension: 'sandbox_compute_runtime_gbs' },
      { resourceType: 'agent', billingDimension: 'agent_async_requests_count' },
      { resourceType: 'volume', billingDimension: 'volume_storage_gbs' },
    );
    let usual = 0;
    fc.assert(
      fc.property(usage, dimension, fc.constantFrom(DEFAULT_PRICE_BOOK, BUSY_BOOK), (amount, type, book) => {
        const event = parseJson(
          JSON.stringify({ ...EVENT, ...type, usage: amount, timestamp: '2026-05-20T00:00:00Z' }),
        );
        if (takesShortWay(event, book)) usual += 1;
      }),
      { numRuns: RUNS },
    );
    expect(usual).toBeGreaterThan(RUNS / 20);
  });

  it('any JSON in any field', () => {
    const fields = [...Object.keys(EVENT), 'resourceUuid', 'revision', 'void', 'label', '__proto__', 'toString'];
    fc.assert(
      fc.property(fc.constantFrom(...fields), fc.jsonValue(), (field, value) => {
        const text = JSON.stringify({ ...EVENT, [field]: undefined });
        takesShortWay(
          parseJson(text.replace('{', `{${JSON.stringify(field)}:${JSON.stringify(value)},`)),
          DEFAULT_PRICE_BOOK,
        );
      }),
      { numRuns: RUNS },
    );
  });
});

describe('the short way is taken by', () => {
  it.each([
    ['a decimal string', {}],
    ['a whole number', { usage: 7 }],
    ['a number with a fraction', { usage: 0.25 }],
    ['nine decimals', { usage: '123456.123456789' }],
    ['a count', { usage: 3, resourceType: 'agent', billingDimension: 'agent_async_requests_count' }],
    ['a timestamp without a fraction', { timestamp: '2026-01-01T00:00:00Z' }],
    ['a timestamp with nanoseconds', { timestamp: '2026-01-01T00:00:00.123456789Z' }],
    ['an id in upper case', { eventId: EVENT.eventId.toUpperCase() }],
    ['a revision', { revision: 65_535 }],
    ['a void', { void: true }],
    ['all fields', { resourceUuid: 'u-1', revision: 0, void: false }],
    ['an absent uuid that is written out', { resourceUuid: null }],
    ['names of any script', { workspace: 'ünï', resourceName: '名前😀' }],
  ])('%s', (_, changes) => {
    expect(takesShortWay({ ...EVENT, ...changes }, DEFAULT_PRICE_BOOK)).toBe(true);
  });
});

/** A character of two bytes, the lower of which is that of an ASCII one. */
const twoBytes = (ascii: string) => String.fromCharCode(0x100 + ascii.charCodeAt(0));

it.each([
  [
    'an id with a character that only looks like a digit in eight bits',
    { eventId: EVENT.eventId.replace('9', twoBytes('9')) },
  ],
  ['a usage with one', { usage: `1${twoBytes('2')}` }],
  ['a usage whose point is one', { usage: `1${twoBytes('.')}5` }],
])('the short way is not taken by %s', (_, changes) => {
  expect(takesShortWay({ ...EVENT, ...changes }, DEFAULT_PRICE_BOOK)).toBe(false);
});
