/** Limits of an account and of a key. Clients that are slow or hostile take nothing from other clients. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { begin, type CollectorFixture, event, inFlight, startCollectorFixture } from '../harness/collector.js';
import { until } from '../harness/waiting.js';

const MiB = 1024 * 1024;

let fixture: CollectorFixture;
let sockets: Socket[] = [];
const CALLER_BURST = 60;
beforeAll(async () => {
  fixture = await startCollectorFixture({
    ADMIN_PORT: '0',
    ACCOUNT_RATE: '1',
    METERLINE_CONSTANTS: JSON.stringify({
      burstSeconds: 2 * CALLER_BURST,
      maxBytes: 24 * MiB,
      platformMaxBytes: 12 * MiB,
      platformRate: 1,
    }),
  });
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  await until('nothing is under way', async () => (await inFlight(fixture.service)) === 0);
  await fixture.takeJobs();
});
afterAll(() => fixture.close());

/** Announces a body of 5 MiB, and sends these bytes of it. */
async function announce(key: string, body: string | Buffer): Promise<Socket> {
  const socket = await begin(fixture.service, key, 5 * MiB, body);
  sockets.push(socket);
  return socket;
}

const errorResponse = z.object({ error: z.string(), message: z.string() });

async function isTaken(): Promise<boolean> {
  const { key } = await fixture.account();
  return (await fixture.send(key, JSON.stringify([event()]))).status === 202;
}

const platformKey = (clientId: string) => fixture.key(undefined, 'emitter', clientId);
const isTakenOfPlatform = async () =>
  (await fixture.send(await platformKey('a quiet platform'), JSON.stringify([event({ accountId: 'any' })]))).status ===
  202;

it('requests of a key are limited to half of what its account may send, and cost other accounts nothing', async () => {
  const { account, key } = await fixture.account();
  const ask = (credential: string) => fixture.send(credential, '[7]', { query: '?validate=only' });
  for (let n = 0; n < CALLER_BURST; n += 1) expect((await ask(key)).status).toBe(200);
  const { status, headers, body } = await ask(key);
  expect([status, errorResponse.parse(body).error]).toEqual([429, 'too_many_requests']);
  expect(headers.get('ratelimit-policy')).toBe('"account";q=120;w=120, "caller";q=60;w=120');
  const other = await fixture.keys.create({ account, role: 'emitter', clientId: 'another' }, new Date());
  expect((await ask(other.key)).headers.get('ratelimit')).toMatch(/^"account";r=59;t=\d+, "caller";r=59;t=\d+$/);
  for (let n = 1; n < CALLER_BURST; n += 1) await ask(other.key);
  const third = await fixture.keys.create({ account, role: 'emitter', clientId: 'a third' }, new Date());
  const refused = await ask(third.key);
  expect(errorResponse.parse(refused.body).message).toContain('All callers of this account together');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await isTaken()).toBe(true);
});

it('requests of a key of all accounts have a limit of their own, and cost accounts nothing', async () => {
  const key = await platformKey('a busy platform');
  const ask = () => fixture.send(key, JSON.stringify([event({ accountId: 'tenant' })]), { query: '?validate=only' });
  for (let n = 0; n < 2 * CALLER_BURST; n += 1) expect((await ask()).status).toBe(200);
  const { status, headers } = await ask();
  expect([status, headers.get('ratelimit-policy')]).toEqual([429, '"caller";q=120;w=120']);
  const tenant = await fixture.key('tenant', 'emitter');
  const { headers: ofTenant } = await fixture.send(tenant, JSON.stringify([event()]));
  expect(ofTenant.get('ratelimit')).toMatch(/^"account";r=119;t=\d+, "caller";r=59;/);
  expect(await isTakenOfPlatform()).toBe(true);
});

describe('bytes in flight', () => {
  it('bytes in flight of a key of all accounts are half of a budget of its own, and take nothing from accounts', async () => {
    const key = await platformKey('a platform with slow bodies');
    await announce(key, Buffer.alloc(4 * MiB, ' '));
    await until('it has been read', async () => (await inFlight(fixture.service)) >= 4 * MiB);
    const { status, body } = await fixture.send(key, Buffer.alloc(4 * MiB, ' '));
    expect([status, errorResponse.parse(body).error]).toEqual([429, 'too_many_bytes_in_flight']);
    expect([await isTaken(), await isTakenOfPlatform()]).toEqual([true, true]);
  });

  it('bytes in flight of accounts that fill the room leave that of the platform free', async () => {
    for (let n = 0; n < 5; n += 1) await announce((await fixture.account()).key, Buffer.alloc(4.75 * MiB, ' '));
    await until('they fill the room', async () => (await inFlight(fixture.service)) >= 23.75 * MiB);
    const batch = Buffer.from(JSON.stringify([event({ accountId: 'any' })]).padEnd(3 * MiB));
    expect((await fixture.send(await platformKey('another platform'), batch)).status).toBe(202);
    expect(await inFlight(fixture.service)).toBeGreaterThanOrEqual(23.75 * MiB);
  });

  it('bytes in flight are those that have arrived, not those that clients announce, and other clients get responses meanwhile', async () => {
    const { key } = await fixture.account();
    for (let n = 0; n < 50; n += 1) await announce(key, '[');
    await until('all have been read', async () => (await inFlight(fixture.service)) >= 50);
    expect(await inFlight(fixture.service)).toBeLessThanOrEqual(50 * 8 * 1024);
    expect(await isTaken()).toBe(true);
    for (const socket of sockets) socket.write(' ');
    expect(await isTaken()).toBe(true);
  });

  it('bytes in flight of an account are limited to a quarter of all; beyond it gets 429, and other accounts get responses', async () => {
    const { key } = await fixture.account();
    await announce(key, Buffer.alloc(4 * MiB, ' '));
    await until('it has been read', async () => (await inFlight(fixture.service)) >= 4 * MiB);
    const { status, headers, body } = await fixture.send(key, Buffer.alloc(4 * MiB, ' '));
    expect([status, headers.get('retry-after'), errorResponse.parse(body).error]).toEqual([
      429,
      '5',
      'too_many_bytes_in_flight',
    ]);
    expect(await isTaken()).toBe(true);
    expect(await inFlight(fixture.service)).toBeLessThanOrEqual(6 * MiB);
  });

  it('bytes in flight of the account with most are given up for other accounts when there is no room left', async () => {
    const slow = await Promise.all(
      [0, 1, 2, 3, 4].map(async () => {
        const { key } = await fixture.account();
        const socket = await announce(key, Buffer.alloc(4.75 * MiB, ' '));
        return { socket, response: once(socket.setEncoding('utf8'), 'data').then(([text]) => String(text)) };
      }),
    );
    await until('they fill the room', async () => (await inFlight(fixture.service)) >= 23.75 * MiB);
    const { key } = await fixture.account();
    const batch = Buffer.from(JSON.stringify([event()]).padEnd(600_000));
    for (let n = 0; n < 5; n += 1) expect((await fixture.send(key, batch)).status).toBe(202);
    // One of the slow bodies was canceled, which made room.
    const first = await Promise.race(slow.map(({ response }) => response));
    expect(first).toMatch(/^HTTP\/1.1 503 .*"error":"server_busy".*canceled/s);
    expect(await inFlight(fixture.service)).toBeGreaterThan(18 * MiB);
  });

  it('bytes in flight do not grow with what a body becomes: compressed bombs and deep JSON are rejected', async () => {
    const { key } = await fixture.account();
    const bomb = gzipSync(Buffer.alloc(16 * MiB, ' '));
    const encoding = { headers: { 'content-encoding': 'gzip' } };
    const deep = (depth: number) => `[{"workspace":${'['.repeat(depth)}${']'.repeat(depth)}}]`;
    const empty = `[${'{},'.repeat(4_999)}{}]`;
    const longName = JSON.stringify({ ['x'.repeat(4 * MiB)]: 1 });
    const [bombs, brackets, nested, none, longNamed] = await Promise.all([
      Promise.all(Array.from({ length: 4 }, () => fixture.send(key, bomb, encoding))),
      fixture.send(key, '['.repeat(1 * MiB)),
      fixture.send(key, deep(100_000)),
      fixture.send(key, empty),
      fixture.send(key, longName),
      isTaken(),
    ]);
    expect(bombs.map(({ status }) => status)).toEqual(Array(4).fill(413));
    expect(brackets).toMatchObject({ status: 400, body: { error: 'invalid_body' } });
    for (const { status } of [none, longNamed]) expect([400, 413, 429]).toContain(status);
    expect(nested).toMatchObject({ status: 400, body: { error: 'no_event_accepted' } });
    expect(await isTaken()).toBe(true);
  });
});
