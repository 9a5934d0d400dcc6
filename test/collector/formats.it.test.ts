/** The formats and encodings of a body, and bodies that are none of them. */
import { spawnSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { eventIdOfCloudEvent } from '@meterline/collector';
import { type CollectorSite, event, eventsAnswer, type SendOptions, startCollectorSite } from '../harness/collector.js';

let site: CollectorSite;
let account: string;
let key: string;
beforeAll(async () => {
  site = await startCollectorSite();
  ({ account, key } = await site.account());
});
afterEach(() => site.takeJobs());
afterAll(() => site.close());

const send = (body: BodyInit, options?: SendOptions) => site.send(account, key, body, options);
const taken = async () => (await site.takeJobs()).flat().map(({ eventId }) => eventId);

const { eventId: _, timestamp, ...usage } = event();
const cloudEvent = (change: Readonly<Record<string, unknown>> = {}) => ({
  specversion: '1.0',
  id: 'run 1',
  source: '/agents/support',
  type: 'meterline.usage',
  time: timestamp,
  data: usage,
  ...change,
});

const members = (count: number) => Array.from({ length: count }, (_, n) => `"k${n}":${n}`).join();

it('a format may be a line for each event; one that is none spoils no other', async () => {
  const [first, last] = [event(), event()];
  const answer = await send(`${JSON.stringify(first)}\n\nnot JSON\r\n${JSON.stringify(last)}`, {
    type: 'application/x-ndjson',
  });
  expect(eventsAnswer.parse(answer.body).results.map(({ reason }) => reason)).toEqual([
    undefined,
    'event_not_an_object',
    undefined,
  ]);
  expect(await taken()).toEqual([first['eventId'], last['eventId']]);
});

it('a format may be a CloudEvent, alone or among others, or in headers, and each is the same event', async () => {
  const id = eventIdOfCloudEvent(account, '/agents/support', 'run 1');
  const headers = {
    'ce-specversion': '1.0',
    'ce-id': 'run%201',
    'ce-source': '/agents/support',
    'ce-type': 'meterline.usage',
    'ce-time': String(timestamp),
  };
  const requests: readonly (readonly [unknown, SendOptions])[] = [
    [cloudEvent(), { type: 'application/cloudevents+json; charset=utf-8' }],
    [[cloudEvent()], { type: 'application/cloudevents-batch+json' }],
    [usage, { headers }],
    [usage, { headers: { ...headers, 'ce-id': '"run 1"', 'ce-source': String.raw`"\/agents/support"` } }],
  ];
  for (const [body, options] of requests) {
    expect(await send(JSON.stringify(body), options)).toMatchObject({
      status: 202,
      body: { results: [{ eventId: id, status: 'accepted' }] },
    });
    expect(await site.takeJobs()).toEqual([[{ ...usage, accountId: account, eventId: id, timestamp }]]);
  }
});

it.each([
  ['2025-10-02T11:30:00.25+02:30', '2025-10-02T09:00:00.25Z'],
  ['2025-10-01T23:00:00-10:00', '2025-10-02T09:00:00Z'],
  ['2025-10-02T09:00:00-00:00', '2025-10-02T09:00:00Z'],
  ['2025-10-02T09:00:00.123456789Z', '2025-10-02T09:00:00.123456789Z'],
])('a format of CloudEvents may have a time of %s, which is in UTC in the event', async (time, inUtc) => {
  const type = 'application/cloudevents+json';
  expect(await send(JSON.stringify(cloudEvent({ time })), { type })).toMatchObject({ status: 202 });
  expect(await site.takeJobs()).toMatchObject([[{ timestamp: inUtc }]]);
});

it.each(['2025-02-30T09:00:00+02:00', '2025-10-02T09:00:00+24:00', '2025-10-02T09:00:00+0200', 'noon+01:00'])(
  'a format of CloudEvents has no time of %s',
  async (time) => {
    const answer = await send(JSON.stringify(cloudEvent({ time })), { type: 'application/cloudevents+json' });
    expect(eventsAnswer.parse(answer.body).results).toMatchObject([{ reason: 'invalid_timestamp' }]);
  },
);

it('a format of CloudEvents has a result for an envelope that is none', async () => {
  const batch = [cloudEvent({ specversion: '0.3', data: undefined }), cloudEvent(), 7];
  const { body } = await send(JSON.stringify(batch), { type: 'application/cloudevents-batch+json' });
  expect(eventsAnswer.parse(body).results).toMatchObject([
    {
      reason: 'invalid_cloud_event',
      message: 'specversion must be "1.0"; data must be the usage event, a JSON object',
    },
    { status: 'accepted' },
    { reason: 'invalid_cloud_event' },
  ]);
});

it.each([
  ['none', ''],
  ['that of a form', 'application/x-www-form-urlencoded'],
  ['another charset', 'application/json; charset=latin1'],
])('a format that is %s is 415, and the answer names what is taken', async (_what, type) => {
  const answer = await send(Buffer.from('[]'), { type });
  expect(answer).toMatchObject({ status: 415, body: { error: 'unsupported_media_type' } });
});

it.each([
  ['nothing', ''],
  ['no JSON', '{"a":'],
  ['no events', '[]'],
  ['a number', '7'],
  ['events and something else', '{"events":[],"more":1}'],
  ['no array', '{"events":[]]'],
  ['a value too many', '[1,]'],
  ['a comma too few', '[1 2]'],
  ['brackets', '['.repeat(200_000)],
  ['no UTF-8', Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d])],
])('a format of %s is 400', async (_what, body) => {
  expect(await send(body)).toMatchObject({ status: 400, body: { error: 'invalid_body' } });
});

it('a format spoils no line by what stands in another one: quotes and brackets end with their line', async () => {
  const body = ['{"a":"', '['.repeat(10), '['.repeat(10), JSON.stringify(event())].join('\n');
  const answer = await send(body, { type: 'application/x-ndjson' });
  expect(answer).toMatchObject({ status: 202, body: { accepted: 1, rejected: 3 } });
});

it.each([
  ['members', `{${members(150_000)}}`],
  ['arrays', `{"workspace":${'['.repeat(200_000)}${']'.repeat(200_000)}}`],
  ['brackets that do not match', `{"workspace":${'['.repeat(200_000)}${'}'.repeat(200_000)}}`],
])('a format may have any number of %s in an event: it is rejected alone, unread', async (_what, large) => {
  const small = event();
  for (const [type, body] of [
    ['application/json', `[${large},${JSON.stringify(small)}]`],
    ['application/json', `{"events":[${JSON.stringify(small)},${large}]}`],
    ['application/x-ndjson', `${large}\n${JSON.stringify(small)}`],
    ['application/cloudevents-batch+json', `[${large},${JSON.stringify(cloudEvent())}]`],
  ] as const) {
    const answer = await send(body, { type });
    expect(answer).toMatchObject({ status: 202, body: { accepted: 1, rejected: 1 } });
    const rejection = eventsAnswer.parse(answer.body).results.find(({ status }) => status === 'rejected');
    expect(rejection).toMatchObject({ reason: 'unknown_field', message: expect.stringContaining('not read') });
  }
  const whole = {
    error: 'invalid_body',
    message: expect.stringContaining('one event, of at most 256 values, or has "events"'),
  };
  expect(await send(large)).toMatchObject({ status: 400, body: whole });
});

it('a format with too many events or bytes is 413', async () => {
  const many = JSON.stringify(Array.from({ length: 5_001 }, () => 0));
  expect(await send(many)).toMatchObject({ status: 413, body: { error: 'too_many_events' } });
  expect(await send(' '.repeat(5 * 1024 * 1024 + 1))).toMatchObject({ status: 413, body: { error: 'body_too_large' } });
  const lines = { type: 'application/x-ndjson' };
  expect(await send('0\n'.repeat(5_001), lines)).toMatchObject({ status: 413, body: { error: 'too_many_events' } });
  // Without an announced length.
  const stream = new Blob([' '.repeat(5 * 1024 * 1024 + 1)]).stream();
  expect(await sendStream(stream)).toBe(413);
});

describe('a body of 5,000 events', () => {
  const events = Array.from({ length: 5_000 }, (_, n) =>
    event({ resourceName: n % 7 === 0 ? 'Zürich 😀' : 'support' }),
  );
  const json = JSON.stringify(events);
  const ndjson = events.map((one) => JSON.stringify(one)).join('\n');
  const batch = JSON.stringify(events.map((data) => cloudEvent({ data })));

  it.each([
    ['an array', 'application/json', json],
    ['an array in an object', 'application/json', `{"events":${json}}`],
    ['lines', 'application/x-ndjson', ndjson],
    ['CloudEvents', 'application/cloudevents-batch+json', batch],
  ])('a body of 5,000 events is taken as %s, plain and compressed, in its order', async (_what, type, text) => {
    const body = Buffer.from(text);
    const bodies: readonly (readonly [Buffer<ArrayBuffer>, Record<string, string>])[] = [
      [body, {}],
      [gzipSync(body), { 'content-encoding': 'gzip' }],
      ...(hasZstd ? [[zstd(body), { 'content-encoding': 'zstd' }] as const] : []),
    ];
    for (const [sent, headers] of bodies) {
      const answer = await send(sent, { type, headers });
      expect(answer).toMatchObject({ status: 202, body: { accepted: 5_000, rejected: 0 } });
      expect(await taken()).toEqual(events.map(({ eventId }) => eventId));
    }
  });

  it('a body of 5,000 events with a fault at its end is 400, and none of it is taken', async () => {
    for (const body of [`${json}]`, json.slice(0, -1), `${json}\u0000`]) {
      expect(await send(body)).toMatchObject({ status: 400, body: { error: 'invalid_body' } });
    }
    expect(await taken()).toEqual([]);
  });
});

async function sendStream(body: ReadableStream): Promise<number> {
  const url = `${site.service.url}/v0/accounts/${account}/events`;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const init: RequestInit & { duplex: 'half' } = { method: 'POST', headers, body, duplex: 'half' };
  return (await fetch(url, init)).status;
}

const zstd = (content: Buffer, ...options: string[]) =>
  spawnSync('zstd', ['-q', '-c', ...options], { input: content, maxBuffer: 1e9 }).stdout;
/** A frame in one piece that holds `[]`, for machines without the command. Source: RFC 8878, section 3.1.1. */
const RAW_ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, 2, 0x11, 0, 0, 0x5b, 0x5d]);
/** Three events, by `zstd -19`. */
const COMPRESSED_ZSTD = Buffer.from(
  'KLUv/QRoTQUAkoohGWDXA6MoFy2is7YCkkqCVlKYZlJjQAIAOC7OE9zWjDt0h4cvzwEXAOL5a9jVivi2I4InwP4p3tyuLzQ9b0k8s30e52rR6JlU3vmW' +
    'RKYpq0pCltaarxUVPH+KNVs+spnet+16UomjLFFbG/ZHsV7KUqxdu1EA7h4BxBfQcAjesKUEz7++tSYMACdAyRWoO14TjjvtcxUtnlFAGDpN/2d41w4EA0HJA1EWVHA=',
  'base64',
);
/** An empty one of a window of 2 GB. */
const HUGE_WINDOW = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0, 0]);
const hasZstd = spawnSync('zstd', ['--version']).error === undefined;

it('an encoding may be gzip', async () => {
  const answer = await send(gzipSync(JSON.stringify([event()])), { headers: { 'content-encoding': 'gzip' } });
  expect(answer.status).toBe(202);
});

it('an encoding may be zstd', async () => {
  const headers = { 'content-encoding': 'zstd' };
  // Decoded: a body without events.
  expect(await send(RAW_ZSTD, { headers })).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining('no events') },
  });
  expect(await send(COMPRESSED_ZSTD, { headers })).toMatchObject({ status: 202, body: { accepted: 3 } });
  if (!hasZstd) return;
  const content = Buffer.from(JSON.stringify(Array.from({ length: 1_000 }, () => event())));
  expect(await send(zstd(content), { headers })).toMatchObject({ status: 202, body: { accepted: 1_000 } });
});

it.each([
  ['gzip', Buffer.from('not gzip')],
  ['gzip', gzipSync('[1, 2, 3]').subarray(0, 20)],
  ['zstd', Buffer.from('not zstd')],
  ['zstd', HUGE_WINDOW],
  ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20])],
])('an encoding that is not the %s it is said to be is 400', async (encoding, body) => {
  const answer = await send(body, { headers: { 'content-encoding': encoding } });
  expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_body' } });
});

it('an encoding that unpacks to more than the limit is refused', async () => {
  const bomb = Buffer.alloc(200_000_000, ' ');
  const gzip = gzipSync(bomb, { level: 9 });
  expect(await send(gzip, { headers: { 'content-encoding': 'gzip' } })).toMatchObject({ status: 413 });
  if (!hasZstd) return;
  expect([413, 400]).toContain((await send(zstd(bomb), { headers: { 'content-encoding': 'zstd' } })).status);
});

it('an encoding of another kind is 415', async () => {
  const answer = await send('[]', { headers: { 'content-encoding': 'br' } });
  expect([answer.status, answer.headers.get('accept-encoding')]).toEqual([415, 'gzip, zstd']);
});
