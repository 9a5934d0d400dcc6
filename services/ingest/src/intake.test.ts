import { expect, it } from '@jest/globals';
import {
  DEFAULT_PRICE_BOOK,
  DEFAULT_PRICE_BOOK_FILE,
  MAX_JOB_BYTES,
  MAX_JOB_VALUES,
  PriceBook,
} from '@meterline/catalog';
import { SANDBOX_EVENT } from '../../../test/harness/events.js';
import { JobPreparer, rejectedLater } from './intake.js';

const NOW = Date.UTC(2026, 5, 1);
const JOB = { id: '7', receivedAt: NOW - 1_000 };
const EVENT = { ...SANDBOX_EVENT, usage: '2', timestamp: '2026-01-01T00:00:00Z' };
const BEFORE = { ...EVENT, timestamp: '2025-12-31T23:59:59.999Z' };
const TOO_LARGE = JSON.stringify(EVENT).replace('"2"', '1e999');

/** @returns the intake, with the accepted events as objects; `text` is the data of the job, `data` what it is to say */
function taken(given: { text: string } | { data: unknown }, { book = DEFAULT_PRICE_BOOK, closedBefore = 0 } = {}) {
  const data = 'text' in given ? given.text : JSON.stringify(given.data);
  const { accepted: rows, ...intake } = new JobPreparer(book).prepare({ ...JOB, data }, NOW, closedBefore);
  const accepted = Array.from({ length: rows.length }, (_, row) => ({
    ...{ position: rows.positionOf(row), priced: rows.eventOf(row) },
  }));
  return { ...intake, rows, accepted };
}

it('the intake prices an event', () => {
  const { rows: _, ...intake } = taken({ data: EVENT });
  expect(intake).toEqual({
    job: JOB,
    accepted: [
      {
        position: 0,
        priced: {
          ...EVENT,
          ...{ resourceUuid: '', usage: 2_000_000_000n, timestamp: Date.UTC(2026, 0, 1), revision: 0, voided: false },
          ...{ cost: 23_000_000n, priceRevision: 0, priceBook: 0 },
        },
      },
    ],
    rejected: [],
  });
});

it('the intake takes the price in force at the timestamp of the event, an account override before the general one', () => {
  const changed = { billingDimension: EVENT.billingDimension, effectiveFrom: EVENT.timestamp } as const;
  const book = new PriceBook({
    ...DEFAULT_PRICE_BOOK_FILE,
    version: 3,
    prices: [...DEFAULT_PRICE_BOOK_FILE.prices, { ...changed, amount: '1' }],
    overrides: [{ ...changed, accountId: 'vip', amount: '0.5' }],
  });
  const { accepted } = taken({ data: { events: [BEFORE, EVENT, { ...EVENT, accountId: 'vip' }] } }, { book });
  expect(accepted.map(({ priced }) => priced.cost)).toEqual([23_000_000n, 2_000_000_000_000n, 1_000_000_000_000n]);
  expect(accepted.map(({ priced }) => priced.priceBook)).toEqual([3, 3, 3]);
});

it('the intake rejects an event that is older than the first price, instead of pricing it at zero', () => {
  const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) => ({ ...price, effectiveFrom: EVENT.timestamp }));
  const book = new PriceBook({ ...DEFAULT_PRICE_BOOK_FILE, prices });
  const { accepted, rejected } = taken({ data: { events: [BEFORE, EVENT] } }, { book });
  expect(accepted.map(({ position }) => position)).toEqual([1]);
  expect(rejected).toMatchObject([{ position: 0, reason: 'no_price', accountId: 'acme' }]);
});

it('the intake numbers events by their place in the job, and keeps of rejected ones what was sent, by whom and when', () => {
  const bad = { ...EVENT, usage: 'much', colour: 'red' };
  const { accepted, rejected } = taken({ data: { events: [EVENT, bad, EVENT, 7] } });
  expect(accepted.map(({ position }) => position)).toEqual([0, 2]);
  const common = { jobId: '7', receivedAt: JOB.receivedAt };
  expect(rejected).toMatchObject([
    { ...common, position: 1, reason: 'unknown_field', accountId: 'acme', payload: JSON.stringify(bad) },
    { ...common, position: 3, reason: 'event_not_an_object', accountId: '', payload: '7' },
  ]);
});

it('the intake stores every digit of a number', () => {
  const text = JSON.stringify({ events: [{ ...EVENT, usage: 7 }] }).replace('"usage":7', '"usage":12345678.123456789');
  expect(taken({ text }).accepted).toMatchObject([{ priced: { usage: 12_345_678_123_456_789n } }]);
});

it('the intake keeps the beginning of a message and of an account that are long, and the whole payload', () => {
  const data = { ...EVENT, accountId: 'a'.repeat(100_000), [`${'x'.repeat(100_000)}`]: 1 };
  const [{ accountId = '', message = '', payload } = { payload: '' }] = taken({ data }).rejected;
  expect([accountId.length, message.length, payload.length > 200_000]).toEqual([2_001, 2_001, true]);
});

it.each([5, null, ['acme'], undefined])(
  'the intake claims no account for an event whose account is %j',
  (accountId) => {
    expect(taken({ data: { ...EVENT, accountId } }).rejected).toMatchObject([{ accountId: '' }]);
  },
);

it.each([
  ['is not JSON', 'job_not_an_object', '{"eventId": oops'],
  ['has another field', 'job_invalid', JSON.stringify({ events: [EVENT], source: 'x' })],
  ['has no events', 'job_empty', '{ "events": [ ] }'],
  ['has 5,001 events', 'job_too_large', `{"events":[${'{},'.repeat(5_000)}{}]}`],
  ['is larger than any may be', 'job_oversized', `{"events":[${'{},'.repeat(MAX_JOB_BYTES / 3)}{}]}`],
  ['has more values than any may have', 'job_oversized', `{"events":[${'{},'.repeat(MAX_JOB_VALUES)}{}]}`],
  ['is an event that is rejected', 'invalid_usage', ` ${TOO_LARGE} `],
  ['has a field named __proto__', 'unknown_field', JSON.stringify(EVENT).replace('{', '{"__proto__":{"void":true},')],
])('the intake keeps the exact text of a job that %s', (_, reason, text) => {
  const { accepted, rejected } = taken({ text });
  const [{ payload, ...first } = { payload: '' }] = rejected;
  expect([accepted.length, rejected.length, first]).toMatchObject([0, 1, { position: 0, reason }]);
  // Megabytes are no message of a test.
  expect(payload === text).toBe(true);
});

it('the intake rejects a whole job with an event that is nested too deeply to be written', () => {
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const text = `{"events":[${JSON.stringify(EVENT)},${deep},${deep}]}`;
  const { accepted, rejected } = taken({ text });
  expect(accepted).toHaveLength(0);
  expect(rejected).toMatchObject([{ position: 0, reason: 'job_invalid', payload: text }]);
});

it('the intake rejects events of closed months, and keeps each as it was sent', () => {
  const closedBefore = Date.parse(EVENT.timestamp);
  const unusual = { ...BEFORE, usage: '0000000000000000000001' };
  const given = { data: { events: [BEFORE, EVENT, { ...BEFORE, usage: -1 }, unusual] } };
  const { accepted, rejected } = taken(given, { closedBefore });
  expect(accepted.map(({ position }) => position)).toEqual([1]);
  expect(rejected).toMatchObject([
    { position: 0, reason: 'too_old', accountId: 'acme', payload: JSON.stringify(BEFORE) },
    { position: 2, reason: 'invalid_usage' },
    { position: 3, reason: 'too_old', accountId: 'acme', payload: JSON.stringify(unusual) },
  ]);
  expect(rejected[0]?.message).toContain('events before 2026-01-01T00:00:00Z are not accepted');
  expect(taken(given, { closedBefore: closedBefore - 1 }).rejected).toHaveLength(1);
});

it('an event that is rejected later keeps a payload that is accepted as the same event when it is sent again', () => {
  const sent = { ...EVENT, resourceUuid: 'u-1', usage: '0.000000001', revision: 4, void: true };
  const { rows, accepted } = taken({ data: { events: ['bad', sent] } });
  const rejection = { reason: 'rejected_by_storage', message: 'violated constraint' } as const;
  const [row] = rejectedLater(JOB, rows, rejection);
  expect(row).toMatchObject({ jobId: '7', position: 1, ...rejection });
  expect(taken({ text: row?.payload ?? '' }).accepted[0]?.priced).toEqual(accepted[0]?.priced);
});
