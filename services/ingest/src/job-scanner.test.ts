import { describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, DEFAULT_PRICE_BOOK_FILE, eventsOfJob, PriceBook, parseJson } from '@meterline/catalog';
import { encodeUsageEvents } from '@meterline/warehouse';
import fc from 'fast-check';
import { JobMaker, rawData } from '../../../test/attack/job-cases.js';
import { SeededRandom } from '../../../test/faults/seeded-random.js';
import { SANDBOX_EVENT } from '../../../test/sandbox-event.js';
import { Pricer } from './intake.js';

const NOW = Date.UTC(2026, 5, 1);
const JOB = { id: 'j', receivedAt: NOW };
const RUNS = process.env.METERLINE_TEST_SHORT ? 150 : 1_000;
/** Nothing is too old. */
const NEVER_CLOSED = 0;
const EVENT = SANDBOX_EVENT;
const ALL_FIELDS = { ...EVENT, resourceUuid: 'u-1', revision: 7, void: true };

/** With a price that changes, and one that comes late. */
const BUSY_BOOK = new PriceBook({
  ...DEFAULT_PRICE_BOOK_FILE,
  version: 65_535,
  prices: [
    ...DEFAULT_PRICE_BOOK_FILE.prices.filter(({ billingDimension }) => billingDimension !== 'volume_storage_gbs'),
    { billingDimension: 'volume_storage_gbs', effectiveFrom: '2026-05-01T00:00:00Z', amount: '7', per: '0.0003' },
    { billingDimension: 'sandbox_compute_runtime_gbs', effectiveFrom: '2026-01-01T00:00:00.500Z', amount: '0.3' },
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
const pricers = [new Pricer(DEFAULT_PRICE_BOOK), new Pricer(BUSY_BOOK)];

/** Gives the job to the scanner and to JSON.parse, and compares them. @returns whether the scanner took it */
function isScanned(data: string | Buffer, closedBefore = NEVER_CLOSED): boolean {
  const bytes = Buffer.from(data);
  const taken = pricers.map((pricer) => {
    const usual = pricer.priceUsualJob(JOB, bytes, NOW, closedBefore);
    if (!usual) return false;
    const priced = pricer.priceJob({ ...JOB, data: bytes.toString() }, NOW, closedBefore);
    expect(priced.rejected).toEqual([]);
    expect(usual.rejected).toEqual([]);
    expect(usual.job).toEqual(priced.job);
    expect(usual.accepted.length).toBe(priced.accepted.length);
    expect(usual.accepted.earliest).toBe(priced.accepted.earliest);
    expect(encodeUsageEvents([usual.accepted]).equals(encodeUsageEvents([priced.accepted]))).toBe(true);
    for (let row = 0; row < priced.accepted.length; row += 1)
      expect(usual.accepted.positionOf(row)).toBe(priced.accepted.positionOf(row));
    return true;
  });
  return taken.includes(true);
}

describe('the scanner makes the rows of a job that JSON.parse makes, or leaves it alone:', () => {
  it('events that fit, that nearly fit, and hostile ones, alone and in jobs', () => {
    const maker = new JobMaker(new SeededRandom(34), { accounts: ['acme', 'ünï', 'zeta'], now: NOW });
    let [scanned, all] = [0, 0];
    for (let job = 0; job < 80; job += 1) {
      const data = maker.data(20);
      isScanned(JSON.stringify(data));
      const events = eventsOfJob(parseJson(JSON.stringify(data)));
      const usual: unknown[] = [];
      for (const event of events.ok ? events.value : []) {
        all += 1;
        if (!isScanned(JSON.stringify(event))) continue;
        scanned += 1;
        usual.push(event);
      }
      if (usual.length > 0) isScanned(JSON.stringify({ events: usual }));
    }
    // About a third is spoiled, and names with escapes are left alone.
    expect(scanned / all).toBeGreaterThan(0.3);
  });

  it('data that no JSON writer gives', () => {
    for (const data of rawData(EVENT)) isScanned(data);
  });

  it('a job with bytes changed, added, removed and swapped', () => {
    const job = Buffer.from(
      JSON.stringify({ events: [EVENT, { ...ALL_FIELDS, usage: 10.25, workspace: 'ünï' }, EVENT] }),
    );
    expect(isScanned(job)).toBe(true);
    const byte = fc.oneof(fc.constantFrom(...Buffer.from('{}[]":,.\\0159-+eETZtz \n\t\0é')), fc.nat(255));
    const change = fc.record({
      at: fc.nat(job.length),
      remove: fc.constantFrom(0, 0, 1, 1, 1, 2, 5),
      add: fc.array(byte, { maxLength: 3 }),
    });
    let scanned = 0;
    fc.assert(
      fc.property(change, ({ at, remove, add }) => {
        if (isScanned(Buffer.concat([job.subarray(0, at), Buffer.from(add), job.subarray(at + remove)]))) scanned += 1;
      }),
      { numRuns: RUNS },
    );
    expect(scanned).toBeGreaterThan(RUNS / 50);
  });

  it('fields in any order, several times, and not at all', () => {
    const pairs = Object.entries(ALL_FIELDS).map(([name, value]) => `"${name}":${JSON.stringify(value)}`);
    fc.assert(
      fc.property(
        fc.shuffledSubarray(pairs, { minLength: 7 }),
        fc.constantFrom(...pairs, '"label":1', '"usage":3'),
        fc.boolean(),
        (some, another, isAdded) => {
          isScanned(`{"events":[{${some.join(',')}},{${(isAdded ? [...some, another] : some).join(',')}}]}`);
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('names that are those of the event before, or nearly', () => {
    const plain = fc.string({ unit: fc.constantFrom('a', 'b', 'ü', ','), minLength: 1, maxLength: 9 });
    const hostile = fc.string({ unit: fc.constantFrom('a', '"', '\\', '}'), maxLength: 9 });
    const name = fc.oneof({ weight: 9, arbitrary: plain }, { weight: 1, arbitrary: hostile });
    const names = fc.array(fc.tuple(name, name), { minLength: 2, maxLength: 4 });
    let scanned = 0;
    fc.assert(
      fc.property(names, (pairs) => {
        const events = pairs.map(([workspace, resourceUuid]) => ({ ...EVENT, workspace, resourceUuid }));
        const repeated = events.flatMap((event) => [event, { ...event, workspace: `${event.workspace}a` }, event]);
        if (isScanned(JSON.stringify({ events: repeated }))) scanned += 1;
        isScanned(JSON.stringify({ events: repeated }).replaceAll('\\"', '"'));
      }),
      { numRuns: RUNS },
    );
    expect(scanned).toBeGreaterThan(RUNS / 50);
  });

  it('any text of JSON as any value', () => {
    const fields = Object.keys(ALL_FIELDS);
    const digits = fc.string({ unit: fc.constantFrom(...'0123456789.'), maxLength: 18 });
    const value = fc.oneof(
      fc.jsonValue().map((json) => JSON.stringify(json)),
      digits,
      digits.map((text) => `"${text}"`),
      fc.double().map(String),
      fc.constantFrom(
        'null',
        'true',
        'false',
        '65535',
        '65536',
        '-0',
        '01',
        '1.',
        '.5',
        '1e3',
        '""',
        '"\ufffd"',
        '"\ufeffa"',
      ),
    );
    fc.assert(
      fc.property(fc.constantFrom(...fields), value, (field, text) => {
        const others = Object.entries({ ...ALL_FIELDS, [field]: undefined });
        const pairs = others.map(([name, value]) => `"${name}":${value === undefined ? text : JSON.stringify(value)}`);
        isScanned(`{${pairs.join(',')}}`);
      }),
      { numRuns: RUNS },
    );
  });

  it('timestamps of every form', () => {
    const part = (most: number, width: number) => fc.nat(most).map((number) => String(number).padStart(width, '0'));
    const day = fc.tuple(part(2200, 4), part(13, 2), part(32, 2)).map((parts) => parts.join('-'));
    const time = fc.tuple(part(25, 2), part(61, 2), part(61, 2)).map((parts) => parts.join(':'));
    const end = fc.constantFrom(
      'Z',
      'z',
      '+00:00',
      '.123Z',
      '.120Z',
      '.1Z',
      '.123456789Z',
      '.12aZ',
      '.1234567890Z',
      '',
      '+01:00',
    );
    fc.assert(
      fc.property(day, fc.constantFrom('T', 'T', 'T', 't', ' '), time, end, (...parts) => {
        isScanned(JSON.stringify({ events: [EVENT, { ...EVENT, timestamp: parts.join('') }] }));
      }),
      { numRuns: RUNS },
    );
  });
});

it('the scanner leaves a job alone when one of its events is too old', () => {
  const closedBefore = Date.UTC(2026, 0, 1, 0, 0, 0, 124);
  const later = { ...EVENT, timestamp: '2026-01-01T00:00:00.124Z' };
  expect(isScanned(JSON.stringify({ events: [later, EVENT, later] }), closedBefore)).toBe(false);
  expect(isScanned(JSON.stringify({ events: [later, later] }), closedBefore)).toBe(true);
});

it.each([
  ['one event', EVENT],
  ['a list', { events: [EVENT, ALL_FIELDS] }],
  ['as many events as a job may hold', { events: Array.from({ length: 5_000 }, () => EVENT) }],
  ['a usage that is a number', { ...EVENT, usage: 0.25 }],
  ['an empty uuid', { ...EVENT, resourceUuid: '' }],
  ['a timestamp with nanoseconds', { ...EVENT, timestamp: '2026-01-01T00:00:00.123456789Z' }],
  ['names of any script', { ...EVENT, workspace: 'ünï', resourceName: '名前😀' }],
])('the scanner takes %s', (_, data) => {
  expect(isScanned(JSON.stringify(data))).toBe(true);
});

it.each([
  ['one event more than a job may hold', JSON.stringify({ events: Array.from({ length: 5_001 }, () => EVENT) })],
  ['no events', '{"events":[]}'],
  ['a name with an escape', JSON.stringify({ ...EVENT, workspace: 'a"b' })],
  ['a name that is no UTF-8', Buffer.from(JSON.stringify({ ...EVENT, workspace: '\xff' }), 'latin1')],
  ['nothing', ''],
])('the scanner leaves %s alone', (_, data) => {
  expect(isScanned(data)).toBe(false);
});

it('names that many jobs bring are numbered anew before they are too many', () => {
  const pricer = new Pricer(DEFAULT_PRICE_BOOK);
  for (let job = 0; job < 14; job += 1) {
    const events = Array.from({ length: 5_000 }, (_, at) => ({ ...EVENT, resourceName: `r-${job}-${at}` }));
    const data = Buffer.from(JSON.stringify({ events }));
    const usual = pricer.priceUsualJob(JOB, data, NOW, NEVER_CLOSED);
    expect(usual?.accepted.eventOf(4_999).resourceName).toBe(`r-${job}-4999`);
  }
});
