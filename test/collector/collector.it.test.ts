/**
 * What the collector answers, of itself too, and what it puts into the queue: DESIGN section 3, decision 0025. Formats are tested beside
 * their code. Who may send events, as the authorisation matrix has it for the query service: decision 0016.
 */
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { METADATA_PATH } from '@meterline/api';
import { createOpenApiDocument } from '@meterline/collector';
import { z } from 'zod';
import { type CallerKind, callersOf, startTokenIssuer, type TokenIssuer } from '../contract/callers.js';
import { examplesOf } from '../contract/document-examples.js';
import {
  type CollectorFixture,
  event,
  eventsResponse,
  type SendOptions,
  startCollectorFixture,
} from '../harness/collector.js';
import { until } from '../harness/waiting.js';
import { adminUrl, scrape } from '../observability/scrape.js';

const account = `acme-${randomUUID()}`;
let issuer: TokenIssuer;
let fixture: CollectorFixture;
let key: string;
beforeAll(async () => {
  issuer = await startTokenIssuer();
  const settings = { ACCOUNT_RATE: '100000', ADMIN_PORT: '0', PUBLIC_URL: 'https://billing.example.com' };
  fixture = await startCollectorFixture({ ...settings, ...issuer.env });
  key = await fixture.key(account, 'emitter');
});
afterEach(() => fixture.takeJobs());
afterAll(async () => {
  await fixture.close();
  await issuer.close();
});

const MiB = 1024 * 1024;

const send = (content: unknown, options?: SendOptions) => fixture.send(account, key, JSON.stringify(content), options);

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
  expect(await fixture.takeJobs()).toEqual([[first, last].map((sent) => ({ ...sent, accountId: account }))]);
});

it('a request of which nothing can be accepted is 400, with the results and the usual error', async () => {
  expect(await send([event({ usage: 'much' })])).toMatchObject({
    status: 400,
    body: { code: 400, error: 'no_event_accepted', accepted: 0, rejected: 1, results: [{ index: 0 }] },
  });
  expect(await fixture.takeJobs()).toEqual([]);
});

it('a request with validate=only is checked, and nothing is kept', async () => {
  const query = '?validate=only';
  const body = { accepted: 1, rejected: 1 };
  expect(await send([event(), event({ usage: -1 })], { query })).toMatchObject({ status: 200, body });
  expect(await send([7], { query })).toMatchObject({ status: 200, body: { accepted: 0, rejected: 1 } });
  expect(await fixture.takeJobs()).toEqual([]);
  const result = await send([event()], { query: '?validate=yes' });
  expect(result).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } });
});

it('a request that reads events is told where to go', async () => {
  const response = await fetch(`${fixture.service.url}/v0/accounts/${account}/events`);
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
  expect((await fixture.send(account, key, gzipSync(JSON.stringify(data)), { headers })).status).toBe(202);
  expect(await fixture.takeJobs()).toMatchObject([[{ ...data, accountId: account, timestamp }]]);
});

it('a request of too many bytes is 413, whether or not it says so', async () => {
  const large = ' '.repeat(5 * MiB + 1);
  // The second is more than the account may have in flight, too: that would be worth another attempt.
  for (const body of [large, ' '.repeat(20 * MiB)]) {
    const result = await fixture.send(account, key, body);
    expect(result).toMatchObject({ status: 413, body: { error: 'body_too_large' } });
  }
  const url = `${fixture.service.url}/v0/accounts/${account}/events`;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = new Blob([large]).stream();
  const init: RequestInit & { duplex: 'half' } = { method: 'POST', headers, body, duplex: 'half' };
  expect((await fetch(url, init)).status).toBe(413);
});

/** Bodies of a greedy key, in flight at once; and requests of another key meanwhile, one after the other. */
const [BODIES, POLITE] = [20, 5];

it('bodies of a key that sends many at once are checked in turn with those of others, which are not behind all of them', async () => {
  const [greedy, polite] = await Promise.all([fixture.account(), fixture.account()]);
  const body = gzipSync(JSON.stringify(Array<unknown>(5_000).fill(event())));
  const options = { query: '?validate=only', headers: { 'content-encoding': 'gzip' } };
  let responded = 0;
  let isOver = false;
  // The greedy key always has so many requests in flight, however long the others take.
  const sending = Array.from({ length: BODIES }, async () => {
    for (; !isOver; responded += 1) {
      const { status } = await fixture.send(greedy.account, greedy.key, body, options);
      expect(status).toBe(200);
    }
  });
  await until('the greedy key is served', async () => responded > 0);
  const before = responded;
  for (let n = 0; n < POLITE; n += 1) {
    expect((await fixture.send(polite.account, polite.key, JSON.stringify(event()))).status).toBe(202);
  }
  const meanwhile = responded - before;
  isOver = true;
  await Promise.all(sending);
  // Behind all of them, each of its requests would have waited for as many.
  expect(meanwhile).toBeLessThan((POLITE * BODIES) / 2);
});

const DENIED = '403 forbidden';
const UNSCOPED = '403 insufficient_scope';
const ACCEPTED = '202';

const callers = callersOf(() => ({ keys: fixture.keys, issuer, now: new Date(), account }));

const OUTCOMES: readonly (readonly [kind: CallerKind, outcome: string])[] = [
  ...callers.turnedAway,
  ['an admin key', DENIED],
  ['an admin key in X-Svc-Authorization', DENIED],
  ['an admin key in both headers', DENIED],
  ['a member key', DENIED],
  ['a member key in X-Svc-Authorization', DENIED],
  ['an emitter key', ACCEPTED],
  ['an operator key', DENIED],
  ['an emitter key of another account', DENIED],
  ['an admin key of another account', DENIED],
  ['a member key of another account', DENIED],
  ['an admin key of ACME', DENIED],
  ['an admin token', ACCEPTED],
  ['a member token', DENIED],
  ['an admin token of two accounts', ACCEPTED],
  ['an admin token of another account', DENIED],
  ['an admin token of ACME', DENIED],
  ['a token of no account', DENIED],
  ['a token without accounts', DENIED],
  ['a token with a role that does not exist', DENIED],
  ['an admin token without scopes', UNSCOPED],
  ['an admin token with another scope', UNSCOPED],
  ['an admin token with the scope admin', ACCEPTED],
  ['a member token with the scope admin', DENIED],
  ['a stranger’s token with the scope admin', DENIED],
  ['an admin token with the scope apiKey:write', UNSCOPED],
  ['a member token with the scope apiKey:write', UNSCOPED],
  ['an admin token with the scope apiKey:list', UNSCOPED],
  ['a member token with the scope apiKey:list', UNSCOPED],
];

const errorResponse = z.object({ error: z.string() });

it.each(OUTCOMES)('events of an account that are sent by %s get %s', async (kind, outcome) => {
  const sent = event();
  const { status, body } = await fixture.sendAs(await callers.all[kind](), account, JSON.stringify([sent]));
  expect(status === 202 ? ACCEPTED : `${status} ${errorResponse.parse(body).error}`).toBe(outcome);
  expect(await fixture.takeJobs()).toEqual(outcome === ACCEPTED ? [[{ ...sent, accountId: account }]] : []);
});

it('events of an account that are sent by a key that may not send them are answered with why, and what to use', async () => {
  for (const kind of ['an admin key', 'a member key'] as const) {
    const { body } = await fixture.sendAs(await callers.all[kind](), account, '[]');
    expect(body).toMatchObject({ message: expect.stringContaining('--role emitter') });
  }
  const { body } = await fixture.sendAs(await callers.all['an emitter key of another account'](), account, '[]');
  expect(body).toMatchObject({ details: [{ message: expect.stringMatching(/^There is no such account, or/) }] });
});

it('events of an account are sent by every kind of caller above', () => {
  expect(OUTCOMES.map(([kind]) => kind).sort()).toEqual(Object.keys(callers.all).sort());
});

const document = createOpenApiDocument();
const get = (path: string) => fetch(fixture.service.url + path);

it('the document of the collector is served, and has a page that leads nowhere else', async () => {
  expect(await (await get('/openapi.json')).json()).toEqual(document);
  const page = await (await get('/docs')).text();
  for (const [, address] of page.matchAll(/(?:href|src)="([^"]+)"/g))
    expect([address, (await get(`${address}`)).status]).toEqual([address, 200]);
});

it('the document of the collector has every path that is served', async () => {
  const served = ['/v0/accounts/{accountId}/events', METADATA_PATH, '/healthz', '/readyz'];
  expect(Object.keys(document.paths)).toEqual(served);
  for (const path of served) expect([path, (await get(path)).status]).not.toEqual([path, 404]);
});

it.each(examplesOf(document))('the request of $name gets exactly its response', async (example) => {
  const { method, target, headers, needsCredential, body, response } = example;
  const credential = needsCredential && { authorization: `Bearer ${await fixture.key('acme', 'emitter')}` };
  const content = body === undefined ? {} : { body };
  const result = await fetch(fixture.service.url + target, {
    method,
    headers: { ...headers, ...credential },
    ...content,
  });
  expect(await result.json()).toEqual(response);
});

it('the collector counts the events that it accepts, on the admin port', async () => {
  const admin = await adminUrl(fixture.service);
  const accepted = async () => (await scrape(admin)).value('meterline_collected_events_total') ?? 0;
  const before = await accepted();
  expect((await send([event(), event(), event({ usage: -1 })])).status).toBe(202);
  expect((await accepted()) - before).toBe(2);
});

const CLIENTS = 20;
const EVENTS = 5;
/** Before the signal. */
const WARM_UP = 100;

it('a collector that is stopped drops nothing that it has accepted, and ends with 0', async () => {
  // Most requests wait to be written together with others when the signal comes.
  const collector = await fixture.startCollector({ METERLINE_CONSTANTS: JSON.stringify({ holdMs: 200 }) });
  const accepted: string[] = [];
  const cut: unknown[] = [];
  let warm = () => {};
  const isWarm = new Promise<void>((resolve) => {
    warm = resolve;
  });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const client = async () => {
    for (;;) {
      const body = JSON.stringify(Array.from({ length: EVENTS }, () => event()));
      const request = fetch(`${collector.url}/v0/accounts/${account}/events`, { method: 'POST', headers, body });
      const response = await request.catch(() => undefined);
      // Nobody answers any more.
      if (!response) return;
      const content = await response.json().catch(String);
      const result = eventsResponse.safeParse(content).data;
      if (response.status !== 202 || result?.accepted !== EVENTS) cut.push(response.status, content);
      for (const { eventId } of result?.results ?? []) if (eventId !== undefined) accepted.push(eventId);
      if (accepted.length >= WARM_UP * EVENTS) warm();
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  await isWarm;
  expect(await collector.stop()).toBe(0);
  await clients;

  expect(cut).toEqual([]);
  const queued = (await fixture.takeJobs()).flat().map(({ eventId }) => String(eventId));
  expect(new Set(queued).size).toBe(queued.length);
  expect(queued.sort()).toEqual(accepted.sort());
});
