/** What is taken from the bytes of a body is what would become of its text: the same results, the same events in the job, the same refusals. */
import { describe, expect, it } from '@jest/globals';
import { ApiError } from '@meterline/api';
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import fc from 'fast-check';
import { JobMaker, rawData } from '../../../../test/attack/job-cases.js';
import { SeededRandom } from '../../../../test/faults/seeded-random.js';
import { SANDBOX_EVENT } from '../../../../test/sandbox-event.js';
import { ArrivingBody, type BodyRules, checkWhole } from './arriving-body.js';
import type { CheckedEvents } from './check.js';
import type { Format } from './formats.js';
import { UsualEvents } from './usual-events.js';

const RUNS = process.env.METERLINE_TEST_SHORT ? 100 : 3_000;
const NOW = Date.UTC(2026, 5, 1);
const ACCOUNTS = ['acme', 'ünï', 'a"b'];
const EVENT = SANDBOX_EVENT;
const { accountId: _, ...WITHOUT_ACCOUNT } = EVENT;
const ALL_FIELDS = { ...EVENT, resourceUuid: 'u-1', revision: 7, void: true, usage: 0.25 };

/** Of all bodies, so that what one left behind would show in the next; it counts what it has taken. */
class Counting extends UsualEvents {
  taken = 0;
  override take(...args: Parameters<UsualEvents['take']>) {
    const taken = super.take(...args);
    this.taken += taken.events;
    return taken;
  }
}
const usual = new Counting(DEFAULT_PRICE_BOOK);

function rulesOf(format: Format, account: string, isFast: boolean): BodyRules {
  const check = () => ({ account, book: DEFAULT_PRICE_BOOK, now: NOW });
  return { format, headers: {}, usual: isFast ? usual : undefined, check };
}

/** As a text: there may be thousands of events, and their members come in the order in which they were sent. */
function outcomeOf(read: () => CheckedEvents): string {
  try {
    const { accepted, results: answer } = read();
    const { results } = JSON.parse(answer.answer().toString());
    const events: unknown[] = JSON.parse(`[${Buffer.concat(accepted.parts)}]`);
    expect(events.length).toBe(accepted.count);
    return JSON.stringify({ results, events });
  } catch (error) {
    if (error instanceof ApiError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

function inPieces(body: Buffer, rules: BodyRules, cuts: readonly number[]): string {
  const ends = [...new Set(cuts.filter((cut) => cut < body.length)), body.length].sort((a, b) => a - b);
  return outcomeOf(() => {
    const arriving = new ArrivingBody(rules);
    let from = 0;
    for (const end of ends) {
      arriving.push(body.subarray(from, end));
      from = end;
    }
    arriving.end();
    return arriving.checked;
  });
}

/** Gives the body to both ways, as a whole and in pieces. @returns how many events were taken from the bytes of the whole */
function compare(text: string | Buffer, format: Format, { account = 'acme', cuts = [] as readonly number[] } = {}) {
  const body = Buffer.from(text);
  const [fast, slow] = [rulesOf(format, account, true), rulesOf(format, account, false)];
  const before = usual.taken;
  expect(outcomeOf(() => checkWhole(body, fast))).toBe(outcomeOf(() => checkWhole(body, slow)));
  const taken = usual.taken - before;
  const [read, expected] = [inPieces(body, fast, cuts), inPieces(body, slow, cuts)];
  // Of a byte that is no UTF-8 and another fault near it, either is told.
  const isEither = [read, expected].includes(NOT_UTF8);
  expect(isEither ? codeOf(read) : read).toBe(isEither ? codeOf(expected) : expected);
  return taken;
}

const NOT_UTF8 = 'invalid_body: The body is not UTF-8.';

function codeOf(refusal: string): string {
  return refusal.replace(/:.*/, '');
}

const cuts = fc.oneof(
  { weight: 9, arbitrary: fc.array(fc.nat(2_000), { maxLength: 8 }) },
  { weight: 1, arbitrary: fc.constant(Array.from({ length: 900 }, (_, at) => at)) },
);

describe('a body is taken from its bytes as from its text:', () => {
  it('events that fit, that nearly fit, and hostile ones, in every format', () => {
    const maker = new JobMaker(new SeededRandom(43), { accounts: ['acme', 'acme', 'ünï'], now: NOW });
    let taken = 0;
    for (let job = 0; job < RUNS / 5; job += 1) {
      const account = ACCOUNTS[job % 4] ?? 'acme';
      const data = JSON.stringify(maker.data(12));
      const events: unknown[] = [JSON.parse(data)].flatMap((value) => value?.events ?? value);
      const texts = events.map((event) => JSON.stringify(event) ?? 'null');
      const cuts = [job * 7, job * 31];
      for (const text of [data, `[${texts.join()}]`, ...texts]) taken += compare(text, 'json', { account, cuts });
      taken += compare(texts.join('\n'), 'ndjson', { account, cuts });
    }
    expect(taken).toBeGreaterThan(RUNS / 5);
  });

  it('data that no JSON writer gives', () => {
    for (const data of rawData(EVENT)) for (const format of ['json', 'ndjson'] as const) compare(data, format);
  });

  it.each<[Format, string]>([
    ['json', `[${[EVENT, WITHOUT_ACCOUNT, ALL_FIELDS, EVENT].map((event) => JSON.stringify(event)).join()}]`],
    ['ndjson', `${[EVENT, WITHOUT_ACCOUNT, ALL_FIELDS].map((event) => JSON.stringify(event)).join('\n')}\n`],
    ['json', JSON.stringify({ events: [EVENT, WITHOUT_ACCOUNT] })],
    ['json', JSON.stringify({ ...WITHOUT_ACCOUNT, workspace: 'ünï 😀' })],
  ])('%s with bytes changed, added, removed and swapped, wherever it is cut', (format, text) => {
    const body = Buffer.from(text);
    expect(compare(body, format)).toBe(text.split('eventId').length - 1);
    const byte = fc.oneof(fc.constantFrom(...Buffer.from('{}[]":,.\\0159-+eETZtz \n\r\t\0é')), fc.nat(255));
    const change = fc.record({
      at: fc.oneof(fc.nat(body.length), fc.integer({ min: body.length - 6, max: body.length })),
      remove: fc.constantFrom(0, 0, 1, 1, 1, 2, 5),
      add: fc.array(byte, { maxLength: 3 }),
    });
    fc.assert(
      fc.property(change, cuts, ({ at, remove, add }, cuts) => {
        const changed = Buffer.concat([body.subarray(0, at), Buffer.from(add), body.subarray(at + remove)]);
        compare(changed, format, { cuts });
      }),
      { numRuns: RUNS },
    );
  });

  it('usual events with any other value between them', () => {
    const value = fc.oneof(
      fc.constantFrom(EVENT, WITHOUT_ACCOUNT, ALL_FIELDS, { ...EVENT, eventId: 'run 1' }).map((e) => JSON.stringify(e)),
      fc.jsonValue().map((json) => JSON.stringify(json)),
      fc.constantFrom('', ' ', '\ufeff', '\u00a0', `\ufeff${JSON.stringify(EVENT)}`, `${JSON.stringify(EVENT)}\r`),
    );
    fc.assert(
      fc.property(fc.array(value, { maxLength: 6 }), cuts, (values, cuts) => {
        compare(`[${values.join()}]`, 'json', { cuts });
        compare(values.join('\n'), 'ndjson', { cuts });
      }),
      { numRuns: RUNS },
    );
  });

  it('as many events as a request may hold, one more, and many values after them', () => {
    const events = (count: number) => Array.from({ length: count }, () => JSON.stringify(EVENT));
    const cuts = Array.from({ length: 24 }, (_, piece) => piece * 65_536);
    for (const list of [events(5_000), events(5_001), [...events(4_999), '7'], [...events(5_000), '7']]) {
      compare(`[${list.join()}]`, 'json', { cuts });
      compare(list.join('\n'), 'ndjson', { cuts });
    }
    // The limit on values is met to the very one: each event has eight, and in an array a comma.
    for (const more of [249_907, 249_908, 249_909, 249_919, 249_920, 249_921]) {
      const values = `${'0,'.repeat(more)}0`;
      compare(`[${[...events(10), `[${values}]`].join()}]`, 'json', { cuts });
      compare([...events(10), values].join('\n'), 'ndjson', { cuts });
    }
  });
});

describe('what producers write is taken from the bytes:', () => {
  it.each<[string, unknown]>([
    ['the least that an event has', EVENT],
    ['all fields', ALL_FIELDS],
    ['no account', WITHOUT_ACCOUNT],
    ['an empty uuid', { ...EVENT, resourceUuid: '' }],
    ['a timestamp with nanoseconds', { ...EVENT, timestamp: '2026-01-01T00:00:00.123456789Z' }],
    ['names of any script', { ...EVENT, workspace: 'ünï', resourceName: '名前😀' }],
  ])('%s', (_what, event) => {
    expect(compare(JSON.stringify(event), 'json')).toBe(1);
    expect(compare(JSON.stringify([event, event]), 'json')).toBe(2);
    expect(compare(JSON.stringify({ events: [event] }), 'json')).toBe(1);
    expect(compare(`${JSON.stringify(event)}\n${JSON.stringify(event)}`, 'ndjson')).toBe(2);
  });

  it.each<[string, unknown]>([
    ['an id in upper case', { ...EVENT, eventId: EVENT.eventId.toUpperCase() }],
    ['an id that is no UUID', { ...EVENT, eventId: 'run 1' }],
    ['another account', { ...EVENT, accountId: 'globex' }],
    ['a name with an escape', { ...EVENT, workspace: 'a"b' }],
    ['a name with a control character', { ...EVENT, workspace: 'a\u007f' }],
    ['a usage that is refused', { ...EVENT, usage: -1 }],
  ])('%s is not', (_what, event) => {
    expect(compare(JSON.stringify([event]), 'json')).toBe(0);
  });
});
