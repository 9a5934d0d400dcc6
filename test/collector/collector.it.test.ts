/**
 * Responses of the collector, and the jobs that it adds to the queue (decision 0025). Formats are tested beside their code, and
 * credentials in test/contract/authorisation-matrix.
 */
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { METADATA_PATH } from '@meterline/api';
import { createOpenApiDocument } from '@meterline/collector';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { callersOf, startTokenIssuer, type TokenIssuer } from '../contract/callers.js';
import { examplesOf, operationsOf } from '../contract/document-examples.js';
import {
  type CollectorFixture,
  event,
  eventsResponse,
  type SendOptions,
  startCollectorFixture,
} from '../harness/collector.js';
import { asRedisUser } from '../harness/services.js';
import { until } from '../harness/waiting.js';
import { adminUrl, scrape } from '../observability/scrape.js';

const account = `acme-${randomUUID()}`;
let issuer: TokenIssuer;
let fixture: CollectorFixture;
let key: string;
beforeAll(async () => {
  issuer = await startTokenIssuer();
  const settings = {
    ...{ ACCOUNT_RATE: '100000', ADMIN_PORT: '0', KEEP_ALIVE_MS: '620000' },
    PUBLIC_URL: 'https://billing.example.com',
  };
  // The proxy alone knows the host that publishes the keys of tokens.
  const proxied = { AUTH_JWKS_URL: 'http://keys.test/jwks.json', HTTP_PROXY: new URL(issuer.jwksUrl).origin };
  fixture = await startCollectorFixture({ ...settings, ...issuer.env, ...proxied });
  key = await fixture.key(account, 'emitter');
});
afterEach(() => fixture.takeJobs());
afterAll(async () => {
  await fixture.close();
  await issuer.close();
});

const MiB = 1024 * 1024;

const send = (content: unknown, options?: SendOptions) => fixture.send(key, JSON.stringify(content), options);

it('a request gets a result for each rejected event, and the accepted events are in the queue by then', async () => {
  const [first, bad, last] = [event(), event({ usage: -1 }), event({ accountId: account })];
  const { status, body } = await send([first, bad, last]);
  expect(status).toBe(202);
  expect(body).toEqual({
    accepted: 2,
    rejected: 1,
    results: [
      {
        index: 1,
        eventId: bad['eventId'],
        status: 'rejected',
        reason: 'invalid_usage',
        message: expect.stringContaining('usage must be'),
      },
    ],
  });
  expect(await fixture.takeJobs()).toEqual([[first, last].map((sent) => ({ ...sent, accountId: account }))]);
});

it('the log line of a request with rejected events has their number, also of the first accounts, and the first reasons', async () => {
  const platform = await fixture.key(undefined, 'emitter');
  const ofAccounts = Array.from({ length: 7 }, (_, index) => event({ accountId: `rejected-${index}`, usage: -1 }));
  const headers = { 'x-request-id': randomUUID() };
  const others = [ofAccounts[1], ofAccounts[6]];
  const body = JSON.stringify([...ofAccounts, 7, ...others, event({ accountId: account })]);
  expect((await fixture.send(platform, body, { headers })).status).toBe(202);
  const line = await fixture.service.entry(({ requestId }) => requestId === headers['x-request-id']);
  const accounts = [0, 1, 2, 3, 4].map((index) => `rejected-${index}`);
  expect(line['rejected']).toEqual({
    events: 10,
    reasons: ['invalid_usage', 'event_not_an_object'],
    accounts: accounts.map((name, index) => ({ account: name, events: index === 1 ? 2 : 1 })),
  });
});

it('a request without an event that can be accepted gets 400 with the results and an error', async () => {
  expect(await send([event({ usage: 'much' })])).toMatchObject({
    status: 400,
    body: { code: 400, error: 'no_event_accepted', accepted: 0, rejected: 1, results: [{ index: 0 }] },
  });
  expect(await fixture.takeJobs()).toEqual([]);
});

it('a request with validate=only is checked, and no event is kept', async () => {
  const query = '?validate=only';
  const body = { accepted: 1, rejected: 1 };
  expect(await send([event(), event({ usage: -1 })], { query })).toMatchObject({ status: 200, body });
  expect(await send([7], { query })).toMatchObject({ status: 200, body: { accepted: 0, rejected: 1 } });
  expect(await fixture.takeJobs()).toEqual([]);
  const result = await send([event()], { query: '?validate=yes' });
  expect(result).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } });
});

it('a request that reads events gets 405, and the API to use', async () => {
  const response = await fetch(`${fixture.service.url}/v0/events`);
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  expect(await response.text()).toContain('read from the query API');
});

it('a request in another encoding gets 415, and the supported encodings', async () => {
  const { status, headers, body } = await send([], { headers: { 'content-encoding': 'br' } });
  expect([status, headers.get('accept-encoding')]).toEqual([415, 'gzip, zstd']);
  expect(body).toMatchObject({ error: 'unsupported_media_type' });
});

it('a request may be a compressed CloudEvent with its attributes in headers', async () => {
  const { eventId: _, timestamp, ...data } = event();
  const attributes = { specversion: '1.0', id: 'run 1', source: '/agents', type: 'usage', time: String(timestamp) };
  const names = Object.entries(attributes).map(([name, value]) => [`ce-${name}`, encodeURIComponent(value)]);
  const headers = { ...Object.fromEntries(names), 'content-encoding': 'gzip' };
  expect((await fixture.send(key, gzipSync(JSON.stringify(data)), { headers })).status).toBe(202);
  expect(await fixture.takeJobs()).toMatchObject([[{ ...data, accountId: account, timestamp }]]);
});

it('a request of too many bytes gets 413, with and without a Content-Length', async () => {
  const large = ' '.repeat(5 * MiB + 1);
  // The second is more than the account may have in flight, too: that would be worth another attempt.
  for (const body of [large, ' '.repeat(20 * MiB)]) {
    const result = await fixture.send(key, body);
    expect(result).toMatchObject({ status: 413, body: { error: 'body_too_large' } });
  }
  const url = `${fixture.service.url}/v0/events`;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = new Blob([large]).stream();
  const init: RequestInit & { duplex: 'half' } = { method: 'POST', headers, body, duplex: 'half' };
  const response = await fetch(url, init);
  expect([response.status, await response.text()]).toEqual([413, expect.stringContaining('body_too_large')]);
});

/** Bodies of a greedy key, in flight at once; and requests of another key meanwhile, one after the other. */
const [BODIES, POLITE] = [10, 5];

it('bodies of a key that sends many at once are checked in turn with the bodies of other keys', async () => {
  const [greedy, polite] = await Promise.all([fixture.account(), fixture.account()]);
  const body = gzipSync(JSON.stringify(Array<unknown>(2_000).fill(event())));
  const options = { query: '?validate=only', headers: { 'content-encoding': 'gzip' } };
  let responded = 0;
  let isOver = false;
  // The greedy key always has so many requests in flight, however long the others take.
  const sending = Array.from({ length: BODIES }, async () => {
    for (; !isOver; responded += 1) {
      const { status } = await fixture.send(greedy.key, body, options);
      expect(status).toBe(200);
    }
  });
  await until('the greedy key is served', () => responded > 0);
  const before = responded;
  for (let n = 0; n < POLITE; n += 1) {
    expect((await fixture.send(polite.key, JSON.stringify(event()))).status).toBe(202);
  }
  const meanwhile = responded - before;
  isOver = true;
  await Promise.all(sending);
  // Behind all of them, each of its requests would have waited for as many.
  expect(meanwhile).toBeLessThan((POLITE * BODIES) / 2);
});

const callers = callersOf(() => ({ keys: fixture.keys, issuer, now: new Date(), account }));

it.each([
  ['garbage', '401 unauthorized'],
  ['an unsigned token', '401 unauthorized'],
  ['an admin key and garbage', '400 conflicting_credentials'],
  ['an admin key', '403 forbidden'],
  ['a member key', '403 forbidden'],
  ['an emitter key', '202'],
  ['an operator key', '403 forbidden'],
  ['a provisioner key', '403 forbidden'],
  ['an emitter key of all accounts', '202'],
  ['an emitter key of another account', '400 no_event_accepted'],
  ['an admin token', '202'],
  ['a member token', '403 forbidden'],
  ['an admin token of two accounts', '202'],
  ['an admin token of another account', '400 no_event_accepted'],
  ['an emitter token of all accounts', '202'],
  ['an operator token', '403 forbidden'],
  ['a provisioner token', '403 forbidden'],
  ['a token with roles of the platform in another claim', '403 forbidden'],
  ['a token of no account', '403 forbidden'],
  ['an admin token without scopes', '403 insufficient_scope'],
  ['an admin token with the scope admin', '202'],
  ['a member token with the scope admin', '403 forbidden'],
  ['an admin token with the scope apiKey:write', '403 insufficient_scope'],
] as const)('events that are sent with %s get %s', async (kind, outcome) => {
  const sent = event({ accountId: account });
  const { status, body } = await fixture.sendAs(await callers.all[kind](), JSON.stringify([sent]));
  expect(status === 202 ? '202' : `${status} ${z.object({ error: z.string() }).parse(body).error}`).toBe(outcome);
  expect(await fixture.takeJobs()).toEqual(outcome === '202' ? [[sent]] : []);
});

it('events that are sent with a key that may not send them get the reason, and the key to use', async () => {
  const bodyOf = async (kind: keyof typeof callers.all) => (await fixture.sendAs(await callers.all[kind](), '[]')).body;
  for (const kind of ['an admin key', 'a member key'] as const)
    expect(await bodyOf(kind)).toMatchObject({ message: expect.stringContaining('--role emitter') });
});

const TENANTS = 300;

it('one request with a key of all accounts has an event of each of 300 accounts, whose rejected ones spoil no other', async () => {
  const platformKey = await fixture.key(undefined, 'emitter');
  const sent = Array.from({ length: TENANTS }, (_, n) => event({ accountId: `${account}-${n}` }));
  const bad = [event(), event({ accountId: account, usage: -1 }), event({ accountId: '' })];
  const { status, body } = await fixture.send(platformKey, JSON.stringify([...bad, ...sent]));
  expect(status).toBe(202);
  const { accepted, results } = eventsResponse.parse(body);
  expect(accepted).toBe(TENANTS);
  expect(results.map(({ reason }) => reason)).toEqual(['missing_field', 'invalid_usage', 'invalid_account_id']);
  expect((await fixture.takeJobs()).flat()).toEqual(sent);
});

const document = createOpenApiDocument();
/** Reads the whole body: a connection with an unread one would keep the test's process alive. */
async function get(path: string) {
  const response = await fetch(fixture.service.url + path);
  return { status: response.status, text: await response.text() };
}

it('the OpenAPI document is served, and its page links only to paths of the collector', async () => {
  expect(JSON.parse((await get('/openapi.json')).text)).toEqual(document);
  const page = await get('/docs');
  for (const [, address] of page.text.matchAll(/(?:href|src)="([^"]+)"/g))
    expect([address, (await get(`/${address}`)).status]).toEqual([address, 200]);
});

it('an idle connection is kept for KEEP_ALIVE_MS', async () => {
  const response = await fetch(`${fixture.service.url}/healthz`);
  await response.text();
  expect(response.headers.get('keep-alive')).toBe('timeout=620');
});

it('the OpenAPI document has every path that is served', async () => {
  const served = ['/v0/events', METADATA_PATH, '/healthz', '/readyz'];
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

const otherFormats = operationsOf(document)
  .flatMap(({ operation }) => Object.entries(operation.requestBody?.content ?? {}))
  .filter(([type]) => type !== 'application/json');

it.each(otherFormats)('the document has an example of %s, whose events are accepted', async (type, { example }) => {
  const body = typeof example === 'string' ? example : JSON.stringify(example);
  expect(await fixture.send(key, body, { type })).toMatchObject({ status: 202, body: { rejected: 0 } });
});

it('the collector counts the events that it accepts, on the admin port', async () => {
  const admin = await adminUrl(fixture.service);
  const accepted = async () => (await scrape(admin)).value('meterline_collected_events_total') ?? 0;
  const before = await accepted();
  expect((await send([event(), event(), event({ usage: -1 })])).status).toBe(202);
  expect((await accepted()) - before).toBe(2);
});

it('the collector notes when a key was last used, and its user of Redis cannot write the key', async () => {
  const sender = await fixture.account();
  const [, keyId = ''] = sender.key.split('_');
  expect((await fixture.send(sender.key, JSON.stringify([event()]))).status).toBe(202);
  await until('the use is noted', async () => (await fixture.keys.find(keyId))?.lastUsedAt !== undefined);
  const { REDIS_URL: url } = asRedisUser(fixture.env, 'collector');
  const redis = new Redis(`${url}`);
  try {
    const command = ['HSET', `meterline:api-key:${keyId}`, 'role', 'operator'] as const;
    await expect(redis.call(...command)).rejects.toThrow(/^NOPERM/);
    const inScript = redis.eval('return redis.call(unpack(ARGV))', 0, ...command);
    await expect(inScript).rejects.toThrow(/NOPERM|can't access at least one of the keys/);
    expect(await fixture.keys.find(keyId)).toMatchObject({ role: 'emitter' });
  } finally {
    redis.disconnect();
  }
});

const CLIENTS = 20;
const EVENTS = 5;
/** Accepted before the signal. */
const REQUESTS = 40;

it('a collector that is stopped loses no event that it has accepted, and ends with code 0', async () => {
  // Most requests wait to be written together with others when the signal comes.
  const collector = await fixture.startCollector({ METERLINE_CONSTANTS: JSON.stringify({ holdMs: 200 }) });
  const accepted: string[] = [];
  const cut: unknown[] = [];
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const client = async () => {
    for (;;) {
      const events = Array.from({ length: EVENTS }, () => event());
      const body = JSON.stringify(events);
      const request = fetch(`${collector.url}/v0/events`, { method: 'POST', headers, body });
      const response = await request.catch(() => undefined);
      // The process has ended.
      if (!response) return;
      const content = await response.json().catch(String);
      const result = eventsResponse.safeParse(content).data;
      if (response.status === 202 && result?.accepted === EVENTS) {
        accepted.push(...events.map(({ eventId }) => String(eventId)));
      } else cut.push(response.status, content);
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  await until('requests were accepted', () => accepted.length >= REQUESTS * EVENTS);
  expect(await collector.stop()).toBe(0);
  await clients;

  expect(cut).toEqual([]);
  const queued = (await fixture.takeJobs()).flat().map(({ eventId }) => String(eventId));
  expect(new Set(queued).size).toBe(queued.length);
  expect(queued.sort()).toEqual(accepted.sort());
});
