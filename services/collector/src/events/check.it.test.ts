/** Checks bodies in each format and encoding, with a result for each rejected event, and rejects bodies as a whole. */
import { spawnSync } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import { gzipSync } from 'node:zlib';
import { expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import { z } from 'zod';
import { usageEvent } from '../../../../test/harness/events.js';
import { type CheckRules, checkEvents, eventIdOf, eventIdOfCloudEvent, onlyAccount } from './check.js';
import { decoderOf, formatOf, readEvents } from './formats.js';

const LINES = 'application/x-ndjson';
const CLOUD_EVENT = 'application/cloudevents+json';
const CLOUD_EVENTS = 'application/cloudevents-batch+json';
const ACCOUNT = 'acme';

interface Options {
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly accounts?: CheckRules['accounts'];
}

/** Decodes, splits and checks a body as the route does. */
async function check(body: string | Buffer, options: Options = {}) {
  const { type = 'application/json', headers = {}, accounts = [ACCOUNT] } = options;
  const sent = { 'content-type': type, ...headers };
  const format = formatOf(sent);
  const decoded = await decoderOf(headers['content-encoding'])(Buffer.from(body));
  const rules = { accounts, book: DEFAULT_PRICE_BOOK, now: Date.UTC(2026, 1) };
  return checkEvents(readEvents(decoded, format, onlyAccount(accounts), sent), rules);
}
const checkJson = (content: unknown, options?: Options) => check(JSON.stringify(content), options);
/** The reason of each event in the order of the request; undefined for an accepted event. */
function reasonsOf({ accepted, results }: Awaited<ReturnType<typeof check>>): readonly (string | undefined)[] {
  const reasons = new Map(results.map(({ index, reason }) => [index, reason]));
  return Array.from({ length: accepted.length + results.length }, (_, index) => reasons.get(index));
}
const idsOf = ({ accepted }: Awaited<ReturnType<typeof check>>) =>
  z
    .array(z.object({ eventId: z.string() }))
    .parse(accepted)
    .map(({ eventId }) => eventId);

const { accountId: _account, ...EVENT } = usageEvent(1);
const { eventId: _id, timestamp, ...DATA } = EVENT;

it('only a rejected event has a result, with its index, and the other events are accepted', async () => {
  const bad: readonly (readonly [unknown, string])[] = [
    [7, 'event_not_an_object'],
    [{ ...EVENT, usage: -1 }, 'invalid_usage'],
    [{ ...EVENT, color: 'red' }, 'unknown_field'],
    [{ ...EVENT, accountId: 'somebody' }, 'account_not_allowed'],
    [{ ...EVENT, eventId: undefined }, 'missing_field'],
    ...['', 7, 'x'.repeat(257)].map((eventId) => [{ ...EVENT, eventId }, 'invalid_event_id'] as const),
  ];
  const checked = await checkJson([EVENT, ...bad.map(([sent]) => sent), usageEvent(2)]);
  expect(checked.accepted).toEqual([usageEvent(1), usageEvent(2)]);
  expect(checked.results.map(({ index }) => index)).toEqual(bad.map((_, index) => index + 1));
  expect(reasonsOf(checked)).toEqual([undefined, ...bad.map(([, reason]) => reason), undefined]);
  const message = 'an event must be a JSON object';
  expect(checked.results[0]).toEqual({ index: 1, status: 'rejected', reason: 'event_not_an_object', message });
});

it('an ID that is not a UUID becomes the same UUID each time, and another UUID in another account', async () => {
  const checked = await checkJson([
    { ...EVENT, eventId: 'run 1' },
    { ...EVENT, eventId: EVENT.eventId.toUpperCase() },
  ]);
  expect(idsOf(checked)).toEqual([eventIdOf(ACCOUNT, 'run 1'), EVENT.eventId]);
  expect(eventIdOf('another', 'run 1')).not.toBe(eventIdOf(ACCOUNT, 'run 1'));
  // This value must never change: a release that computed another UUID would count events again.
  expect(eventIdOf(ACCOUNT, 'run-4711')).toBe('48bb1770-de5d-50a4-b30b-f6939f1d2208');
});

it('the result of a rejected event has the ID as sent', async () => {
  const sent = [
    { ...EVENT, eventId: 'b-2', usage: -1 },
    { ...EVENT, eventId: EVENT.eventId.toUpperCase(), usage: -1 },
    { ...EVENT, eventId: 'b-3', accountId: 'somebody' },
    { ...EVENT, eventId: 'b-4', accountId: 7 },
  ];
  const { results } = await checkJson(sent);
  expect(results.map(({ eventId }) => eventId)).toEqual(sent.map(({ eventId }) => eventId));
  const reasons = ['invalid_usage', 'invalid_usage', 'account_not_allowed', 'invalid_account_id'];
  expect(results.map(({ reason }) => reason)).toEqual(reasons);
});

it('the rejection of an ID that is not a text says that any text is allowed, and lists the other problems', async () => {
  const { results } = await checkJson([{ ...EVENT, eventId: 7, usage: -1 }]);
  const rule = 'eventId must be a string of 1 to 256 characters without control characters; usage must be a number';
  expect(results).toMatchObject([{ reason: 'invalid_event_id', message: expect.stringContaining(rule) }]);
});

const OF_GLOBEX = { ...EVENT, accountId: 'globex' };

it.each<[string, CheckRules['accounts'], readonly (string | undefined)[], string]>([
  ['one account', [ACCOUNT], [undefined, undefined, 'account_not_allowed'], 'or be left out (got "globex")'],
  ['all accounts', 'all', ['missing_field', undefined, undefined], 'accountId is missing: this API key or token'],
  ['two accounts', [ACCOUNT, 'initech'], ['missing_field', undefined, 'account_not_allowed'], 'accountId is missing'],
])(
  'an event of a caller who may send for %s is accepted or rejected by its account',
  async (_whose, accounts, reasons, words) => {
    const checked = await checkJson([EVENT, usageEvent(1), OF_GLOBEX], { accounts });
    expect(reasonsOf(checked)).toEqual(reasons);
    expect(checked.results.find(({ message }) => message)?.message).toContain(words);
  },
);

it('the UUID of another ID depends on the account of its event, in JSON and in a CloudEvent', async () => {
  const named = ['acme', 'globex'].map((accountId) => ({ ...EVENT, accountId, eventId: 'run 1' }));
  const accounts = 'all';
  expect(idsOf(await checkJson(named, { accounts }))).toEqual([
    eventIdOf('acme', 'run 1'),
    eventIdOf('globex', 'run 1'),
  ]);
  const envelopes = ['acme', 'globex'].map((accountId) => cloudEvent({ data: { ...DATA, accountId } }));
  const anonymous = cloudEvent({ subject: 'acme' });
  const checked = await checkJson([...envelopes, anonymous], { accounts, type: CLOUD_EVENTS });
  const idOf = (account: string) => eventIdOfCloudEvent(account, '/agents/support', 'run 1');
  expect(idsOf(checked)).toEqual([idOf('acme'), idOf('globex')]);
  expect(reasonsOf(checked)).toEqual([undefined, undefined, 'missing_field']);
});

it('a line that is not JSON, even with open quotes or brackets, does not affect the other lines', async () => {
  const lines = [JSON.stringify(EVENT), '', 'not JSON\r', '{"a":"', '['.repeat(10), JSON.stringify(usageEvent(2))];
  const checked = await check(lines.join('\n'), { type: LINES });
  const rejection = { reason: 'event_not_an_object', message: expect.stringMatching(/^the line is not valid JSON; /) };
  expect(checked.results).toMatchObject(Array(3).fill(rejection));
  expect(checked.accepted).toEqual([usageEvent(1), usageEvent(2)]);
});

const cloudEvent = (change: Readonly<Record<string, unknown>> = {}) => ({
  specversion: '1.0',
  id: 'run 1',
  source: '/agents/support',
  type: 'meterline.usage',
  time: timestamp,
  data: DATA,
  ...change,
});
const IN_HEADERS = {
  'ce-specversion': '1.0',
  'ce-id': 'run%201',
  'ce-source': '/agents/support',
  'ce-type': 'meterline.usage',
  'ce-time': timestamp,
};

it.each<[string, unknown, Options]>([
  ['alone', cloudEvent(), { type: `${CLOUD_EVENT}; charset=utf-8` }],
  ['among others', [cloudEvent()], { type: CLOUD_EVENTS }],
  ['in headers', DATA, { headers: IN_HEADERS }],
  [
    'in quoted headers',
    DATA,
    { headers: { ...IN_HEADERS, 'ce-id': '"run 1"', 'ce-source': String.raw`"\/agents/support"` } },
  ],
])('a CloudEvent %s is the same event', async (_how, body, options) => {
  const eventId = eventIdOfCloudEvent(ACCOUNT, '/agents/support', 'run 1');
  expect((await checkJson(body, options)).accepted).toEqual([{ ...DATA, accountId: ACCOUNT, eventId, timestamp }]);
});

it.each<[string, string, string]>([
  ['JSON', 'application/json', JSON.stringify({ ...EVENT, usage: 7 })],
  ['a line', LINES, JSON.stringify({ ...EVENT, usage: 7 })],
  ['a CloudEvent', CLOUD_EVENT, JSON.stringify(cloudEvent({ data: { ...DATA, usage: 7 } }))],
])('%s keeps every digit of a number', async (_what, type, text) => {
  const { accepted } = await check(text.replace('"usage":7', '"usage":12345678.123456789'), { type });
  expect(accepted).toMatchObject([{ usage: '12345678.123456789' }]);
});

it('the time of a CloudEvent may have any offset and becomes UTC, and an invalid time is rejected', async () => {
  const times = [
    ['2025-10-02T11:30:00.25+02:30', '2025-10-02T09:00:00.25Z'],
    ['2025-10-01T23:00:00-10:00', '2025-10-02T09:00:00Z'],
    ['2025-10-02T09:00:00-00:00', '2025-10-02T09:00:00Z'],
    ['2025-10-02T09:00:00.123456789Z', '2025-10-02T09:00:00.123456789Z'],
  ] as const;
  const wrong = ['2025-02-30T09:00:00+02:00', '2025-10-02T09:00:00+24:00', '2025-10-02T09:00:00+0200', 'noon+01:00'];
  const batch = [...times.map(([time]) => time), ...wrong].map((time) => cloudEvent({ time }));
  const checked = await checkJson(batch, { type: CLOUD_EVENTS });
  expect(reasonsOf(checked).filter(Boolean)).toEqual(wrong.map(() => 'invalid_timestamp'));
  expect(checked.accepted).toMatchObject(times.map(([, inUtc]) => ({ timestamp: inUtc })));
});

it('the result of a malformed CloudEvent names each problem', async () => {
  const attribute = 'must be a string of 1 to 256 characters without control characters';
  const envelopes: readonly (readonly [unknown, string])[] = [
    [
      cloudEvent({ specversion: '0.3', data: undefined }),
      'specversion must be "1.0"; data must be the usage event, a JSON object',
    ],
    [cloudEvent({ id: '', source: 7 }), `id ${attribute}; source ${attribute}`],
    [cloudEvent({ type: null, time: 7 }), 'type must be a string, such as "meterline.usage"; time must be a string'],
    [
      cloudEvent({ data_base64: 'e30=', data: undefined }),
      'data_base64 is not supported; send the event as JSON in data',
    ],
    [7, 'a CloudEvent must be a JSON object'],
  ];
  const sent = [...envelopes.map(([envelope]) => envelope), cloudEvent()];
  const { accepted, results } = await checkJson(sent, { type: CLOUD_EVENTS });
  expect(accepted).toHaveLength(1);
  expect(results).toMatchObject(envelopes.map(([, message]) => ({ reason: 'invalid_cloud_event', message })));
});

it.each<[string, string, Options?]>([
  ['as JSON', JSON.stringify(cloudEvent())],
  ['among others as JSON', JSON.stringify([cloudEvent()])],
  ['on a line', JSON.stringify(cloudEvent()), { type: LINES }],
])('a CloudEvent that is sent %s is rejected with the media type that it needs', async (_how, body, options = {}) => {
  expect((await check(body, options)).results).toMatchObject([
    { reason: 'invalid_cloud_event', message: expect.stringContaining(`Content-Type ${CLOUD_EVENT}, or several`) },
  ]);
});

it.each<[string, string]>([
  ['the bytes of UTF-8', Buffer.from('zürich').toString('latin1')],
  ['the bytes of Latin-1', 'zürich'],
  ['a control character', 'a\tb'],
  ['a percent sign', '100%'],
  ['a byte that is no UTF-8', '%FF'],
  ['an overlong space', '%C0%A0'],
])('a CloudEvent with %s in a header is rejected', async (_what, id) => {
  const { results } = await checkJson(DATA, { headers: { ...IN_HEADERS, 'ce-id': id } });
  expect(results).toMatchObject([
    {
      reason: 'invalid_cloud_event',
      message: expect.stringMatching(/^the header ce-id must be ASCII; percent-encode/),
    },
  ]);
});

it('a body may have the charset utf8, and an empty Content-Encoding', async () => {
  const options = { type: 'application/json; charset=utf8', headers: { 'content-encoding': '' } };
  expect((await checkJson(EVENT, options)).accepted).toHaveLength(1);
});

it('a CloudEvent has the same id in headers and in JSON', async () => {
  const id = '100% zürich/%ff';
  const headers = { ...IN_HEADERS, 'ce-id': encodeURIComponent(id).toLowerCase() };
  const inJson = await checkJson(cloudEvent({ id }), { type: CLOUD_EVENT });
  expect(idsOf(await checkJson(DATA, { headers }))).toEqual(idsOf(inJson));
});

const gzip = { headers: { 'content-encoding': 'gzip' } };
const zstd = { headers: { 'content-encoding': 'zstd' } };
const packed = (content: Buffer) => spawnSync('zstd', ['-q', '-c'], { input: content, maxBuffer: 1e9 }).stdout;
const hasZstd = spawnSync('zstd', ['--version']).error === undefined;
/** A frame in one piece that holds `[]`, for machines without the command. Source: RFC 8878, section 3.1.1. */
const EMPTY_ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, 2, 0x11, 0, 0, 0x5b, 0x5d]);
/** An empty one of a window of 2 GB. */
const HUGE_WINDOW = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0, 0]);
const BOMB = Buffer.alloc(6 * 1024 * 1024);

it.each<[string, string | Buffer, number, string, Options?]>([
  ['of no type', '[]', 415, 'Content-Type must be one of application/json, ', { type: '' }],
  ['of a form', '[]', 415, 'not "application/x-www-form-urlencoded"', { type: 'application/x-www-form-urlencoded' }],
  ['of another charset', '[]', 415, 'charset must be utf-8', { type: 'application/json; charset=latin1' }],
  ['of another encoding', '[]', 415, 'may be gzip, zstd', { headers: { 'content-encoding': 'br' } }],
  ['of nothing', '', 400, 'must be JSON'],
  ['of no JSON', '{"a":', 400, 'must be JSON'],
  ['of no events', '[]', 400, 'has no events'],
  ['of a number', '7', 400, 'must be JSON'],
  ['of events and something else', '{"events":[],"more":1}', 400, 'must be JSON'],
  ['of no array', '{"events":[]]', 400, 'must be JSON'],
  [
    'of one CloudEvent as a batch',
    JSON.stringify(cloudEvent()),
    400,
    `Content-Type ${CLOUD_EVENT}.`,
    { type: CLOUD_EVENTS },
  ],
  ['of a value too many', '[1,]', 400, 'must be JSON'],
  ['of a comma too few', '[1 2]', 400, 'must be JSON'],
  ['of brackets', '['.repeat(200_000), 400, 'must be JSON'],
  ['of no UTF-8', Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]), 400, 'not UTF-8'],
  ['of no gzip', 'not gzip', 400, 'not gzip', gzip],
  ['of a part of gzip', gzipSync('[1, 2, 3]').subarray(0, 20), 400, 'not gzip', gzip],
  ['of no zstd', 'not zstd', 400, 'not zstd', zstd],
  ['of no events in zstd', EMPTY_ZSTD, 400, 'has no events', zstd],
  ['of a huge window', HUGE_WINDOW, 400, 'not zstd', zstd],
  ['of the beginning of zstd', HUGE_WINDOW.subarray(0, 5), 400, 'not zstd', zstd],
  ['of too many events', JSON.stringify(Array(5_001).fill(0)), 413, 'may hold 5000 events'],
  ['of too many lines', '0\n'.repeat(5_001), 413, 'may hold 5000 events', { type: LINES }],
  ['of too many bytes once decoded', gzipSync(BOMB), 413, 'may have 5242880 bytes', gzip],
  ...(hasZstd ? [['of too many in zstd', packed(BOMB), 400, 'more than 5242880', zstd] as const] : []).map(
    (row): [string, Buffer, number, string, Options] => [...row],
  ),
])('a body %s is rejected as a whole', async (_what, body, status, words, options = {}) => {
  await expect(check(body, options)).rejects.toMatchObject({ status, message: expect.stringContaining(words) });
});

const members = (count: number) => Array.from({ length: count }, (_, n) => `"k${n}":${n}`).join();

it.each([
  ['members', `{${members(150_000)}}`],
  ['arrays', `{"workspace":${'['.repeat(200_000)}${']'.repeat(200_000)}}`],
  ['brackets that do not match', `{"workspace":${'['.repeat(200_000)}${'}'.repeat(200_000)}}`],
])(
  'an event with a huge number of %s is rejected without being parsed, and the other event is accepted',
  async (_what, large) => {
    const small = JSON.stringify(EVENT);
    for (const [type, body] of [
      ['application/json', `[${large},${small}]`],
      ['application/json', `{"events":[${small},${large}]}`],
      [LINES, `${large}\n${small}`],
      [CLOUD_EVENTS, `[${large},${JSON.stringify(cloudEvent())}]`],
    ] as const) {
      const { accepted, results } = await check(body, { type });
      expect(accepted).toHaveLength(1);
      const rejection = { reason: 'unknown_field', message: expect.stringContaining('not read') };
      expect(results).toMatchObject([rejection]);
    }
    const message = expect.stringContaining('one event, of at most 256 values, or has "events"');
    await expect(check(large)).rejects.toMatchObject({ status: 400, message });
  },
);

const MANY = Array.from({ length: 5_000 }, (_, n) =>
  usageEvent(n, { resourceName: n % 7 === 0 ? 'Zürich 😀' : 'support' }),
);
const JSON_OF_MANY = JSON.stringify(MANY);
const isAllAccepted = async (body: string | Buffer, options: Options) =>
  // Jest's own comparison takes half a second.
  isDeepStrictEqual((await check(body, options)).accepted, MANY);

it.each([
  ['an array in an object', 'application/json', `{"events":${JSON_OF_MANY}}`],
  ['lines', LINES, MANY.map((one) => JSON.stringify(one)).join('\n')],
  ['CloudEvents', CLOUD_EVENTS, JSON.stringify(MANY.map((data) => cloudEvent({ data })))],
])('a body of 5,000 events is accepted as %s, in its order', async (_what, type, body) => {
  expect(await isAllAccepted(body, { type })).toBe(true);
});

it('a body of 5,000 events is accepted as an array, plain and compressed', async () => {
  expect(await isAllAccepted(JSON_OF_MANY, {})).toBe(true);
  expect(await isAllAccepted(gzipSync(JSON_OF_MANY), gzip)).toBe(true);
  if (hasZstd) expect(await isAllAccepted(packed(Buffer.from(JSON_OF_MANY)), zstd)).toBe(true);
});

it('a body of 5,000 events with an error at its end is rejected as a whole', async () => {
  for (const body of [`${JSON_OF_MANY}]`, JSON_OF_MANY.slice(0, -1), `${JSON_OF_MANY}\u0000`]) {
    await expect(check(body)).rejects.toMatchObject({ status: 400, code: 'invalid_body' });
  }
});

it('checking a body of events with 40,000 different names yields to other requests', async () => {
  const body = Array.from({ length: 2_000 }, (_, n) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, member) => [`name-${n}-${member}`, 0])),
  );
  let turns = 0;
  const others = setInterval(() => {
    turns += 1;
  });
  const { accepted, results } = await checkJson(body);
  clearInterval(others);
  expect([accepted.length, results.length]).toEqual([0, 2_000]);
  expect(turns).toBeGreaterThan(10);
});
