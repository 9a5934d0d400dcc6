import { expect, it } from '@jest/globals';
import {
  DEFAULT_PRICE_BOOK,
  DEFAULT_PRICE_BOOK_FILE,
  MAX_JOB_BYTES,
  MAX_JOB_VALUES,
  PriceBook,
} from '@meterline/catalog';
import { SANDBOX_EVENT } from '../../../test/harness/events.js';
import { type Intake, Pricer, rejectedByStorage } from './intake.js';

const NOW = Date.UTC(2026, 5, 1);
const JOB = { id: '7', receivedAt: NOW - 1_000 };

const EVENT = { ...SANDBOX_EVENT, usage: '2', timestamp: '2026-01-01T00:00:00Z' };

function takeText(data: string, book = DEFAULT_PRICE_BOOK, closedBefore = 0) {
  return withEvents(new Pricer(book).priceJob({ ...JOB, data }, NOW, closedBefore));
}

/** With the accepted events as objects. */
function withEvents({ accepted: rows, ...intake }: Intake) {
  const accepted = Array.from({ length: rows.length }, (_, row) => ({
    ...{ position: rows.positionOf(row), priced: rows.eventOf(row) },
  }));
  return { ...intake, accepted };
}

function take(data: unknown, book?: PriceBook) {
  return takeText(JSON.stringify(data), book);
}

it('the intake prices one event', () => {
  expect(take(EVENT)).toEqual({
    job: JOB,
    accepted: [
      {
        position: 0,
        priced: {
          eventId: EVENT.eventId,
          accountId: 'acme',
          workspace: 'prod',
          resourceType: 'sandbox',
          resourceName: 'builder',
          resourceUuid: '',
          billingDimension: 'sandbox_compute_runtime_gbs',
          usage: 2_000_000_000n,
          timestamp: Date.UTC(2026, 0, 1),
          revision: 0,
          voided: false,
          cost: 23_000_000n,
          priceRevision: 0,
          priceBook: 0,
        },
      },
    ],
    rejected: [],
  });
});

it.each(['accountId', 'workspace', 'resourceName'])('the intake rejects an event whose %s is empty', (field) => {
  const { accepted, rejected } = take({ ...EVENT, [field]: '' });
  expect([accepted.length, rejected.length]).toEqual([0, 1]);
});

it('the intake numbers events by their place in the job, refused ones included', () => {
  const intake = take({ events: [EVENT, { ...EVENT, usage: -1 }, EVENT, 7] });
  expect(intake.accepted.map(({ position }) => position)).toEqual([0, 2]);
  expect(intake.rejected.map(({ position, reason }) => [position, reason])).toEqual([
    [1, 'invalid_usage'],
    [3, 'event_not_an_object'],
  ]);
});

it('the intake keeps of a refused event what was sent, whose it claims to be, and when the queue took its job', () => {
  const bad = { ...EVENT, usage: 'much', colour: 'red' };
  expect(take(bad).rejected).toMatchObject([
    { jobId: '7', receivedAt: JOB.receivedAt, position: 0, accountId: 'acme', payload: JSON.stringify(bad) },
  ]);
});

it.each([5, null, ['acme'], undefined])(
  'the intake claims no account for an event whose account is %j',
  (accountId) => {
    expect(take({ ...EVENT, accountId }).rejected).toMatchObject([{ accountId: '' }]);
  },
);

it.each([
  ['not JSON', '{"eventId": oops'],
  ['empty', ''],
  ['a number', '5'],
  ['a string', '"text"'],
  ['null', 'null'],
  ['an array', '[{}]'],
])('the intake keeps the exact text of a job that is %s', (_, text) => {
  expect(takeText(text)).toMatchObject({
    accepted: [],
    rejected: [{ position: 0, reason: 'job_not_an_object', accountId: '', payload: text }],
  });
});

it('the intake keeps the exact text, spaces and all, of a job without events', () => {
  expect(takeText('{ "events": [ ] }').rejected).toMatchObject([{ reason: 'job_empty', payload: '{ "events": [ ] }' }]);
});

it('the intake takes 5,000 events and refuses 5,001 as a whole', () => {
  const events = (count: number) => ({ events: Array.from({ length: count }, () => EVENT) });
  expect(take(events(5_000)).accepted).toHaveLength(5_000);
  const intake = take(events(5_001));
  expect(intake.accepted).toEqual([]);
  expect(intake.rejected).toMatchObject([{ reason: 'job_too_large', position: 0 }]);
});

it('the intake rejects a job that is larger than any job may be, or has more values, without parsing it', () => {
  const long = `{"events":[${'{},'.repeat(MAX_JOB_BYTES / 3)}{}]}`;
  const crowded = `{"events":[${'{},'.repeat(MAX_JOB_VALUES)}{}]}`;
  for (const text of [long, crowded]) {
    expect(takeText(text)).toMatchObject({ accepted: [], rejected: [{ reason: 'job_oversized', payload: text }] });
  }
});

it('the intake prices a usage with more digits than a double has exactly', () => {
  const { accepted } = take({ ...EVENT, usage: '123456789012345.123456789' });
  expect(accepted[0]?.priced).toMatchObject({
    usage: 123_456_789_012_345_123_456_789n,
    cost: 1_419_753_073_641_968_919_753n,
  });
});

it('the intake takes an id in upper case, and a resourceUuid of null, as what they mean', () => {
  const { accepted } = take({ ...EVENT, eventId: EVENT.eventId.toUpperCase(), resourceUuid: null });
  expect(accepted[0]?.priced).toMatchObject({ eventId: EVENT.eventId, resourceUuid: '' });
});

it('the intake keeps the exact text of a job of one event', () => {
  const text = ` ${JSON.stringify(EVENT).replace('"2"', '1e999')} `;
  expect(takeText(text).rejected).toMatchObject([{ reason: 'invalid_usage', payload: text }]);
});

it('the intake shows a number that is too large for JavaScript instead of null', () => {
  const text = `{"events":[${JSON.stringify(EVENT).replace('"2"', '1e999')}]}`;
  expect(takeText(text).rejected[0]?.payload).toContain('"usage":"Infinity"');
});

it('the intake keeps the whole job, once, for events that are nested too deeply to be written', () => {
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const text = `{"events":[${JSON.stringify(EVENT)},${deep},${deep}]}`;
  const intake = takeText(text);
  expect(intake.accepted).toHaveLength(1);
  expect(intake.rejected).toMatchObject([
    { position: 1, reason: 'event_not_an_object', payload: text },
    { position: 2, reason: 'event_not_an_object', payload: '"see the payload of position 1 of this job"' },
  ]);
});

it('the intake refuses a field named __proto__ like any other unknown one', () => {
  const text = JSON.stringify(EVENT).replace('{', '{"__proto__":{"void":true},');
  expect(takeText(text).rejected).toMatchObject([{ reason: 'unknown_field' }]);
});

it('the intake takes the price in force at the timestamp of the event, an account override before the general one', () => {
  const changed = { billingDimension: EVENT.billingDimension, effectiveFrom: '2026-01-01T00:00:00Z' } as const;
  const book = new PriceBook({
    ...DEFAULT_PRICE_BOOK_FILE,
    version: 3,
    prices: [...DEFAULT_PRICE_BOOK_FILE.prices, { ...changed, amount: '1' }],
    overrides: [{ ...changed, accountId: 'vip', amount: '0.5' }],
  });
  const before = { ...EVENT, timestamp: '2025-12-31T23:59:59.999Z' };
  const { accepted } = take({ events: [before, EVENT, { ...EVENT, accountId: 'vip' }] }, book);
  expect(accepted.map(({ priced }) => priced.cost)).toEqual([23_000_000n, 2_000_000_000_000n, 1_000_000_000_000n]);
  expect(accepted.map(({ priced }) => priced.priceBook)).toEqual([3, 3, 3]);
});

it('the intake refuses an event that is older than the first price, instead of pricing it at zero', () => {
  const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) => ({ ...price, effectiveFrom: '2026-01-01T00:00:00Z' }));
  const book = new PriceBook({ ...DEFAULT_PRICE_BOOK_FILE, prices });
  const intake = take({ events: [{ ...EVENT, timestamp: '2025-12-31T23:59:59.999Z' }, EVENT] }, book);
  expect(intake.accepted.map(({ position }) => position)).toEqual([1]);
  expect(intake.rejected).toMatchObject([{ position: 0, reason: 'no_price', accountId: 'acme' }]);
});

it('the intake rejects events of closed months, and keeps each as it was sent', () => {
  const closedBefore = Date.parse(EVENT.timestamp);
  const old = { ...EVENT, timestamp: '2025-12-31T23:59:59.999Z' };
  const unusual = { ...old, usage: '0000000000000000000001' };
  const bad = { ...old, usage: -1 };
  const data = JSON.stringify({ events: [old, EVENT, bad, unusual] });
  const intake = takeText(data, DEFAULT_PRICE_BOOK, closedBefore);
  expect(intake.accepted.map(({ position }) => position)).toEqual([1]);
  expect(intake.rejected).toMatchObject([
    { position: 0, reason: 'too_old', accountId: 'acme', payload: JSON.stringify(old) },
    { position: 2, reason: 'invalid_usage' },
    { position: 3, reason: 'too_old', accountId: 'acme', payload: JSON.stringify(unusual) },
  ]);
  expect(intake.rejected[0]?.message).toContain('events before 2026-01-01T00:00:00Z are not accepted');
  expect(takeText(data, DEFAULT_PRICE_BOOK, closedBefore - 1).rejected).toHaveLength(1);
});

it('the intake keeps an event of a closed month that is a job of its own as its text', () => {
  const text = ` ${JSON.stringify(EVENT)}`;
  const intake = takeText(text, DEFAULT_PRICE_BOOK, NOW);
  expect(intake).toMatchObject({ accepted: [], rejected: [{ position: 0, reason: 'too_old', payload: text }] });
});

it('rejectedByStorage keeps a payload that is accepted as the same event when it is sent again', () => {
  const sent = { ...EVENT, resourceUuid: 'u-1', usage: '0.000000001', revision: 4, void: true };
  const { accepted } = new Pricer(DEFAULT_PRICE_BOOK).priceJob(
    { ...JOB, data: JSON.stringify({ events: ['bad', sent] }) },
    NOW,
    0,
  );
  const row = rejectedByStorage(JOB, accepted, 'violated constraint');
  expect(row).toMatchObject({
    jobId: '7',
    position: 1,
    reason: 'rejected_by_storage',
    message: 'violated constraint',
  });
  expect(takeText(row.payload).accepted[0]?.priced).toEqual(accepted.eventOf(0));
});
