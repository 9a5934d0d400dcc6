/** What one account or key may send, and that a client that is slow, hostile or gone takes nothing from the others. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { until } from '../e2e/pipeline.js';
import { adminUrl, scrape } from '../observability/scrape.js';
import { type CollectorSite, event, startCollectorSite } from './fixture.js';

const PATIENCE_MS = 30_000;
const MiB = 1024 * 1024;

let site: CollectorSite;
let sockets: Socket[] = [];
const CALLER_BURST = 60;
const ACCOUNT_BURST = 90;
beforeAll(async () => {
  site = await startCollectorSite({
    ADMIN_PORT: '0',
    COLLECTOR_CALLER_RATE: '1',
    COLLECTOR_CALLER_BURST: String(CALLER_BURST),
    COLLECTOR_ACCOUNT_RATE: '1',
    COLLECTOR_ACCOUNT_BURST: String(ACCOUNT_BURST),
    COLLECTOR_MAX_BYTES: String(24 * MiB),
  });
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  await until('nothing is under way', PATIENCE_MS, async () => (await underWay()) === 0);
  await site.takeJobs();
});
afterAll(() => site.stop());

async function underWay(): Promise<number> {
  return (await scrape(await adminUrl(site.service))).value('meterline_collector_bytes_under_way') ?? Number.NaN;
}

/** Sends the head of a request, and these bytes of its body. */
async function begin(
  account: string,
  key: string,
  length: number,
  body: string | Buffer,
  headers: readonly string[] = [],
): Promise<Socket> {
  const socket = connect(Number(new URL(site.service.url).port), '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  await once(socket, 'connect');
  socket.write(
    [
      `POST /v0/accounts/${account}/events HTTP/1.1`,
      'Host: collector',
      `Authorization: Bearer ${key}`,
      'Content-Type: application/json',
      `Content-Length: ${length}`,
      ...headers,
      '\r\n',
    ].join('\r\n'),
  );
  socket.write(body);
  return socket;
}

const errorAnswer = z.object({ error: z.string(), message: z.string() });

async function isTaken(): Promise<boolean> {
  const { account, key } = await site.account();
  return (await site.send(account, key, JSON.stringify([event()]))).status === 202;
}

describe('requests', () => {
  /** More at once than there is room for, however slow the machine: a request more is allowed each second. */
  async function flood(account: string, key: string) {
    const requests = Array.from({ length: 200 }, () => site.send(account, key, '[7]', { query: '?validate=only' }));
    const answers = await Promise.all(requests);
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status === 200).length + refused.length).toBe(answers.length);
    return { refused, passed: answers.length - refused.length };
  }

  it('of a caller, and of all callers of an account, are limited with the fields of the draft, and of nobody else', async () => {
    const { account, key } = await site.account();
    const other = await site.keys.create({ account, role: 'emitter', clientId: 'another' }, new Date());
    const started = performance.now();
    const first = await flood(account, key);
    expect(first.passed).toBeGreaterThanOrEqual(CALLER_BURST);
    const second = await flood(account, other.key);
    const refilled = Math.ceil((performance.now() - started) / 1000);
    expect(first.passed + second.passed).toBeLessThanOrEqual(ACCOUNT_BURST + refilled);

    for (const [{ refused }, whose] of [
      [first, 'You may send 1 requests'],
      [second, 'All callers of this account together'],
    ] as const) {
      const answers = refused.map(({ body }) => errorAnswer.parse(body));
      expect(answers).toContainEqual({ error: 'too_many_requests', message: expect.stringContaining(whose) });
      for (const { headers } of refused) {
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
        expect(headers.get('ratelimit-policy')).toBe('"account";q=90;w=90, "caller";q=60;w=60');
        expect(headers.get('ratelimit')).toMatch(/^"account";r=\d+;t=\d+, "caller";r=\d+;t=\d+$/);
      }
    }
    expect(await isTaken()).toBe(true);
  });
});

describe('bytes under way', () => {
  it('of clients that announce much and send little are few, and others are answered meanwhile', async () => {
    const { account, key } = await site.account();
    for (let n = 0; n < 50; n += 1) await begin(account, key, 5 * MiB, '[');
    await until('all have been read', PATIENCE_MS, async () => (await underWay()) >= 50);
    expect(await underWay()).toBeLessThanOrEqual(50 * 8 * 1024);
    expect(await isTaken()).toBe(true);
    for (const socket of sockets) socket.write(' ');
    expect(await isTaken()).toBe(true);
  });

  it('of an account are a quarter of all: what is more is 429, and others are answered meanwhile', async () => {
    const { account, key } = await site.account();
    await begin(account, key, 5 * MiB, Buffer.alloc(4 * MiB, ' '));
    await until('it has been read', PATIENCE_MS, async () => (await underWay()) >= 4 * MiB);
    const { status, headers, body } = await site.send(account, key, Buffer.alloc(4 * MiB, ' '));
    expect([status, headers.get('retry-after'), errorAnswer.parse(body).error]).toEqual([
      429,
      '5',
      'too_much_under_way',
    ]);
    expect(await isTaken()).toBe(true);
    expect(await underWay()).toBeLessThanOrEqual(6 * MiB);
  });

  it('are no more than the events and the bytes that a request may have: it is answered before its body has ended', async () => {
    const { account, key } = await site.account();
    for (const [body, error] of [
      [`[${'{},'.repeat(30_000)}`, 'too_many_events'],
      [`[${'{"a":},'.repeat(13_000)}`, 'invalid_body'],
    ] as const) {
      const socket = await begin(account, key, 5 * MiB, body);
      const [answer] = await once(socket.setEncoding('utf8'), 'data');
      expect(answer).toContain(`"error":"${error}"`);
      socket.destroy();
    }
  });

  it('are none of a body that goes on after its gzip, which is answered before that has come', async () => {
    const { account, key } = await site.account();
    const head = Buffer.concat([gzipSync(JSON.stringify([event()])), Buffer.alloc(100_000)]);
    const rest = Buffer.alloc(3 * MiB);
    const socket = await begin(account, key, head.length + rest.length, head, ['Content-Encoding: gzip']);
    const [answer] = await once(socket.setEncoding('utf8'), 'data');
    expect(answer).toMatch(/^HTTP\/1.1 202 /);
    await new Promise((resolve) => socket.write(rest, resolve));
    socket.write(`GET /healthz HTTP/1.1\r\nHost: collector\r\n\r\n`);
    expect((await once(socket, 'data'))[0]).toMatch(/^HTTP\/1.1 \d+ /);
    expect(await underWay()).toBe(0);
  });

  it('are counted for events that are three bytes each, too', async () => {
    const { account, key } = await site.account();
    await begin(account, key, 5 * MiB, `[${'{},'.repeat(4_990)}"${'a'.repeat(60_000)}`);
    await until('it has been read', PATIENCE_MS, async () => (await underWay()) >= 256 * 4_990);
  });

  it('do not grow with what a body becomes: bombs, and depth, are refused at once and beside each other', async () => {
    const { account, key } = await site.account();
    const bomb = gzipSync(Buffer.alloc(64 * MiB, ' '));
    const encoding = { headers: { 'content-encoding': 'gzip' } };
    const deep = (depth: number) => `[{"workspace":${'['.repeat(depth)}${']'.repeat(depth)}}]`;
    const [bombs, brackets, nested] = await Promise.all([
      Promise.all(Array.from({ length: 10 }, () => site.send(account, key, bomb, encoding))),
      site.send(account, key, '['.repeat(1 * MiB)),
      site.send(account, key, deep(100_000)),
      isTaken(),
    ]);
    expect(bombs.map(({ status }) => status)).toEqual(Array(10).fill(413));
    expect(brackets.status).toBe(413);
    expect(nested).toMatchObject({ status: 400, body: { error: 'no_event_accepted' } });
    expect(await isTaken()).toBe(true);
  });
});
