/** What the collector answers, and what it puts into the queue: DESIGN section 3, decision 0025. Formats are tested beside their code. */
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { type CollectorFixture, event, type SendOptions, startCollectorFixture } from '../harness/collector.js';
import { until } from '../harness/queue.js';

const MiB = 1024 * 1024;

let site: CollectorFixture;
let account: string;
let key: string;
beforeAll(async () => {
  site = await startCollectorFixture({ ACCOUNT_RATE: '100000' });
  ({ account, key } = await site.account());
});
afterEach(() => site.takeJobs());
afterAll(() => site.close());

const send = (content: unknown, options?: SendOptions) => site.send(account, key, JSON.stringify(content), options);

it('a request is answered with a result for each event, and the accepted ones are in the queue by then', async () => {
  const [first, bad, last] = [event(), event({ usage: -1 }), event({ accountId: account })];
  const { status, body } = await send([first, bad, last]);
  expect(status).toBe(202);
  expect(body).toEqual({
    accepted: 2,
    rejected: 1,
    results: [
      { index: 0, eventId: first['eventId'], status: 'accepted' },
      {
        index: 1,
        eventId: bad['eventId'],
        status: 'rejected',
        reason: 'invalid_usage',
        message: expect.stringContaining('usage must be'),
      },
      { index: 2, eventId: last['eventId'], status: 'accepted' },
    ],
  });
  expect(await site.takeJobs()).toEqual([[first, last].map((sent) => ({ ...sent, accountId: account }))]);
});

it('a request of which nothing can be accepted is 400, with the results and the usual error', async () => {
  expect(await send([event({ usage: 'much' })])).toMatchObject({
    status: 400,
    body: { code: 400, error: 'no_event_accepted', accepted: 0, rejected: 1, results: [{ index: 0 }] },
  });
  expect(await site.takeJobs()).toEqual([]);
});

it('a request with validate=only is checked, and nothing is kept', async () => {
  const query = '?validate=only';
  const body = { accepted: 1, rejected: 1 };
  expect(await send([event(), event({ usage: -1 })], { query })).toMatchObject({ status: 200, body });
  expect(await send([7], { query })).toMatchObject({ status: 200, body: { accepted: 0, rejected: 1 } });
  expect(await site.takeJobs()).toEqual([]);
  const answer = await send([event()], { query: '?validate=yes' });
  expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } });
});

it('a request that reads events is told where to go', async () => {
  const response = await fetch(`${site.service.url}/v0/accounts/${account}/events`);
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  expect(await response.text()).toContain('read from the query API');
});

it('a request in another encoding is 415, and names those that are taken', async () => {
  const { status, headers, body } = await send([], { headers: { 'content-encoding': 'br' } });
  expect([status, headers.get('accept-encoding')]).toEqual([415, 'gzip, zstd']);
  expect(body).toMatchObject({ error: 'unsupported_media_type' });
});

it('a request may have its events in a CloudEvent in headers, compressed', async () => {
  const { eventId: _, timestamp, ...data } = event();
  const attributes = { specversion: '1.0', id: 'run 1', source: '/agents', type: 'usage', time: String(timestamp) };
  const names = Object.entries(attributes).map(([name, value]) => [`ce-${name}`, encodeURIComponent(value)]);
  const headers = { ...Object.fromEntries(names), 'content-encoding': 'gzip' };
  expect((await site.send(account, key, gzipSync(JSON.stringify(data)), { headers })).status).toBe(202);
  expect(await site.takeJobs()).toMatchObject([[{ ...data, accountId: account, timestamp }]]);
});

it('a request of too many bytes is 413, whether or not it says so', async () => {
  const large = ' '.repeat(5 * MiB + 1);
  // The second is more than the account may have in flight, too: that would be worth another attempt.
  for (const body of [large, ' '.repeat(20 * MiB)]) {
    const answer = await site.send(account, key, body);
    expect(answer).toMatchObject({ status: 413, body: { error: 'body_too_large' } });
  }
  const url = `${site.service.url}/v0/accounts/${account}/events`;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = new Blob([large]).stream();
  const init: RequestInit & { duplex: 'half' } = { method: 'POST', headers, body, duplex: 'half' };
  expect((await fetch(url, init)).status).toBe(413);
});

/** Of a greedy key, under way at once; and requests of another key meanwhile, one after the other. */
const [BODIES, POLITE] = [20, 5];

it('bodies of a key that sends many at once are checked in turn with those of others, which are not behind all of them', async () => {
  const [greedy, polite] = await Promise.all([site.account(), site.account()]);
  const body = gzipSync(JSON.stringify(Array<unknown>(5_000).fill(event())));
  const options = { query: '?validate=only', headers: { 'content-encoding': 'gzip' } };
  let answered = 0;
  let isOver = false;
  // It never has fewer than so many on their way, however long the others take.
  const sending = Array.from({ length: BODIES }, async () => {
    for (; !isOver; answered += 1) {
      const { status } = await site.send(greedy.account, greedy.key, body, options);
      expect(status).toBe(200);
    }
  });
  await until('the greedy key is served', 30_000, async () => answered > 0);
  const before = answered;
  for (let n = 0; n < POLITE; n += 1) {
    expect((await site.send(polite.account, polite.key, JSON.stringify(event()))).status).toBe(202);
  }
  const meanwhile = answered - before;
  isOver = true;
  await Promise.all(sending);
  // Behind all of them, each of its requests would have waited for as many.
  expect(meanwhile).toBeLessThan((POLITE * BODIES) / 2);
});
