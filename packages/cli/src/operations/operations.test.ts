import { expect, it } from '@jest/globals';
import {
  DEFAULT_PRICE_BOOK_FILE,
  MAX_JOB_VALUES,
  PriceBook,
  type PriceBookFile,
  type RejectionReason,
} from '@meterline/catalog';
import { tooManyValues } from '@meterline/service/job';
import type { OpenRejection, PricedEvent } from '@meterline/warehouse';
import { pricedEvent } from '../../../../test/harness/events.js';
import { formatRejectionId, parseRejectionId, settlementGroups } from './rejections.js';
import { CostChanges, repricedEvent } from './repricing.js';
import { applyEdits, jobsOfEvents, parseEdit, resendable } from './resendable.js';

function rejection(payloadBytes: number, reason: OpenRejection['reason'] = 'invalid_usage'): OpenRejection {
  const key = { receivedAt: 0, fingerprint: 0n, jobId: '1', position: 0 };
  return { ...key, accountId: '', reason, message: '', payloadBytes };
}
const job = (megabytes: number) => rejection(megabytes * 1024 * 1024, 'job_too_large');

it.each<[string, OpenRejection[], number[]]>([
  ['at most 500 rejections', Array.from({ length: 1_001 }, () => rejection(100)), [500, 500, 1]],
  ['at most 4 MB, or one rejection', [job(2), job(2), job(1), job(9), job(1)], [2, 1, 1, 1]],
  ['no member if nothing is selected', [], []],
])('a group has %s', (_what, rejections, sizes) => {
  expect(settlementGroups(rejections).map((group) => group.length)).toEqual(sizes);
});

it.each([
  [0, 0n, '0-0'],
  [Date.UTC(2026, 0, 1), 123_456_789n, 'mjuohs00-21i3v9'],
  [Date.UTC(2200, 0, 1) - 1, 2n ** 64n - 1n, '2kmc0anzz-3w5e11264sgsf'],
])('the ID of %d and %d is %s, and is parsed back', (receivedAt, fingerprint, text) => {
  expect(formatRejectionId({ receivedAt, fingerprint })).toBe(text);
  expect(parseRejectionId(text)).toEqual({ receivedAt, fingerprint });
});

it.each(['', '1', '-', '1-', 'A-1', '1-3w5e11264sgsg', '1-1-1'])('the text "%s" is not an ID', (text) => {
  expect(parseRejectionId(text)).toBeUndefined();
});

const DEEP = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
const MANY = Array.from({ length: 5_001 }, (_, n) => ({ n }));

interface Given {
  readonly payload: string;
  readonly reason?: RejectionReason;
  readonly set?: object;
  readonly unset?: string;
}

const event = (sent: unknown) => ({ kind: 'event', event: sent });
const jobs = (...sent: unknown[]) => ({ kind: 'jobs', jobs: sent });
const nothing = (why: string) => ({ kind: 'unsendable', why: expect.stringContaining(why) });
const whole = (payload: string): Given => ({ payload, reason: 'job_invalid' });

it.each<[string, Given, object]>([
  ['the event as it was rejected', { payload: '{"usage":-1}' }, event({ usage: -1 })],
  ['the event with its edits', { payload: '{"usage":-1,"x":{}}', set: { usage: 1 }, unset: 'x' }, event({ usage: 1 })],
  ['an infinite number as text, not as null', { payload: '{"usage":1e999}' }, event({ usage: 'Infinity' })],
  [
    'a number that a double would round, as text',
    { payload: '{"usage":12345678.123456789}' },
    event({ usage: '12345678.123456789' }),
  ],
  ['an event with a field of events, as one event', { payload: '{"events":[{},{}]}' }, event({ events: [{}, {}] })],
  ['a text that was rejected whole', whole('"text"'), jobs('text')],
  ['a list that was rejected whole', whole('[{"usage":1}]'), jobs([{ usage: 1 }])],
  ['an empty job that was rejected whole', whole('{"events":[]}'), jobs({ events: [] })],
  ['a job with an additional field', whole('{"events":[{}],"x":1}'), jobs({ events: [{}], x: 1 })],
  ['a job without its removed field', { ...whole('{"events":[],"x":1}'), unset: 'x' }, jobs({ events: [] })],
  ['a null that was rejected whole', whole('null'), jobs(null)],
  [
    'two jobs for a job with too many events',
    { payload: JSON.stringify({ events: MANY }), reason: 'job_too_large' },
    jobs({ events: MANY.slice(0, 5_000) }, { events: MANY.slice(5_000) }),
  ],
  [
    'an event that is nested too deeply and was the whole job',
    { payload: `{"usage":3,"extra":${DEEP}}`, unset: 'extra' },
    event({ usage: 3 }),
  ],
  ['nothing for a job that is still nested too deeply', whole(`{"events":[{},${DEEP}]}`), nothing('nested too deeply')],
  ['nothing for a payload that is not JSON', { payload: '{"eventId": oops' }, nothing('not JSON')],
  ['nothing for an edit of text', { payload: '"text"', unset: 'x' }, nothing('no fields to edit')],
])('a replay sends %s', (_what, given, expected) => {
  const { payload, reason = 'invalid_usage', set = {}, unset } = given;
  const edits = {
    set: new Map<string, unknown>(Object.entries(set)),
    unset: new Set(unset === undefined ? [] : [unset]),
  };
  expect(resendable({ reason }, payload, edits)).toEqual(expected);
});

it.each([
  ['usage=1234567890.123456789', 'usage', '1234567890.123456789'],
  ['revision=1', 'revision', 1],
  ['revision=x', 'revision', 'x'],
  ['void=true', 'void', true],
  ['workspace=production', 'workspace', 'production'],
  ['workspace=true', 'workspace', 'true'],
  ['workspace=', 'workspace', ''],
  ['resourceName=a=b', 'resourceName', 'a=b'],
  ['resourceName=a\nb', 'resourceName', 'a\nb'],
])('the edit %j sets %s to %j', (text, field, value) => expect(parseEdit(text)).toEqual({ field, value }));

it.each(['', 'usage', '=5'])('the text %j is not an edit', (text) => expect(parseEdit(text)).toBeUndefined());

it('edits change, add and remove fields with any name, and keep all other fields and the original event', () => {
  const text = '{"eventId":"e","usage":-1,"extra":1,"__proto__":1}';
  const before = JSON.parse(text);
  const set = new Map<string, unknown>(Object.entries({ usage: 5, workspace: 'w' }));
  const edited = applyEdits(before, { set, unset: new Set(['extra', '__proto__', 'none']) });
  expect(JSON.stringify(edited)).toBe('{"eventId":"e","usage":5,"workspace":"w"}');
  expect(JSON.stringify(before)).toBe(text);
});

it('events that are sent again share no job with more values than one may have, and each is in one', () => {
  const large = { samples: Array.from({ length: 2_600 }, (_, n) => n) };
  const events = [...Array.from({ length: 400 }, (_, n) => ({ n })), ...Array.from({ length: 100 }, () => large)];
  const jobs = jobsOfEvents(events);
  expect(jobs.length).toBe(Math.ceil((100 * 2_602) / MAX_JOB_VALUES));
  expect(jobs.map((job) => tooManyValues(JSON.stringify(job)))).toEqual(jobs.map(() => undefined));
  expect(jobs.flatMap((job) => job.events)).toEqual(events);
  expect(jobsOfEvents([])).toEqual([]);
});

const SANDBOX = 'sandbox_compute_runtime_gbs';
const NOON = Date.UTC(2026, 0, 1, 12);
const AT_NOON = '2026-01-01T12:00:00Z';

/** The built-in book with another price of one dimension. */
function book(amount: string, effectiveFrom = '1970-01-01T00:00:00Z'): PriceBook {
  const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) =>
    price.billingDimension === SANDBOX ? { ...price, amount, effectiveFrom } : price,
  );
  const overrides: PriceBookFile['overrides'] = [
    { accountId: 'special', billingDimension: SANDBOX, effectiveFrom: '1970-01-01T00:00:00Z', amount: '0' },
  ];
  return new PriceBook({ ...DEFAULT_PRICE_BOOK_FILE, version: 4, prices, overrides });
}

const EVENT = pricedEvent({
  eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
  usage: 3_000_000_001n,
  timestamp: NOON,
  revision: 7,
  cost: 34_500_000n,
});
// 3.000000001 × 0.00002 = 0.00006000000002, half-even at 12 decimals
const REPRICED = { ...EVENT, cost: 60_000_000n, priceRevision: 1, priceBook: 4 };

it.each<[string, PricedEvent, PriceBook, PricedEvent | undefined]>([
  [
    'keeps the fields of its producer, and has the next price revision and the exact cost',
    EVENT,
    book('0.00002'),
    REPRICED,
  ],
  [
    'stays unchanged if its cost is correct, whatever its book',
    { ...REPRICED, priceBook: 1 },
    book('0.00002'),
    undefined,
  ],
  [
    'has the price of its account',
    { ...EVENT, accountId: 'special' },
    book('1'),
    { ...REPRICED, accountId: 'special', cost: 0n },
  ],
  ['has a price that starts at its time', EVENT, book('0.00002', AT_NOON), REPRICED],
])('an event under another price book %s', (_what, event, prices, expected) => {
  expect(repricedEvent(event, prices)).toEqual(expected);
});

it.each([
  [
    'is older than the first price',
    { ...EVENT, timestamp: NOON - 1 },
    'the price book has no price for sandbox_compute_runtime_gbs at 2026-01-01T11:59:59.999Z, the time of event ' +
      '0190c5e4-7b1a-7def-8abc-0123456789ab; add an earlier price to the book, or use a later --from',
  ],
  ['has the highest price revision', { ...EVENT, priceRevision: 65_535 }, 're-priced 65535 times'],
])('an event that %s is an error with its ID', (_what, event, message) => {
  expect(() => repricedEvent(event, book('1', AT_NOON))).toThrow(message);
});

it('changes in cost add up exactly, in the order of the catalog', () => {
  const changes = new CostChanges();
  changes.add('job_compute_runtime_gbs', 1n, 1n);
  changes.add(SANDBOX, 10n ** 33n, 10n ** 33n + 1n);
  changes.add(SANDBOX, 5n, 2n);
  const rows = [...changes.byDimension(), changes.total(), new CostChanges().total()];
  expect(rows.map((row) => Object.values(row))).toEqual([
    [SANDBOX, 2, 2, '1000000000000000000000.000000000005', '1000000000000000000000.000000000003', '-0.000000000002'],
    ['job_compute_runtime_gbs', 1, 0, '0.000000000001', '0.000000000001', '0'],
    ['total', 3, 2, '1000000000000000000000.000000000006', '1000000000000000000000.000000000004', '-0.000000000002'],
    ['total', 0, 0, '0', '0', '0'],
  ]);
});
