import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import express from 'express';
import { pino } from 'pino';
import type { ByteBudget } from './admission/byte-budget.js';
import { responseBudget, sendJson } from './admission/response-bytes.js';
import { ApiError } from './http/errors.js';
import { type RunningServer, startServer } from './server.js';

/** More than the socket buffers of both sides can hold, which is up to 4 MB (tcp(7), `tcp_wmem`). */
const LARGE = Buffer.alloc(8_000_000, 'x');
const RESPONSE = JSON.stringify('x'.repeat(6_000_000));
const LIMIT_MS = 200;

let server: RunningServer;
afterEach(() => server.close(0));

describe('the send timeout', () => {
  let client: Socket;

  beforeEach(async () => {
    server = await startServer(
      async (request, response) => {
        if (request.url === '/slow') await delay(2 * LIMIT_MS);
        response.end(request.url === '/large' ? LARGE : 'small');
      },
      { port: 0, log: pino({ level: 'silent' }), sendTimeoutMs: LIMIT_MS },
    );
    client = connect(server.port, '127.0.0.1');
    client.on('error', () => undefined);
  });
  afterEach(() => void client.destroy());

  const ask = (...paths: string[]) =>
    client.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));

  it('a response that is not read in time is cut off, together with the pipelined responses behind it', async () => {
    ask('/large', '/large', '/large');
    await once(client, 'readable');
    await delay(2 * LIMIT_MS);
    // The client reads only now, and gets only what the socket buffers hold.
    let received = 0;
    client.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    await once(client, 'close');
    expect(received).toBeLessThan(LARGE.length);
  });

  it('a response that is read very slowly is cut off too', async () => {
    ask('/large');
    await once(client, 'readable');
    for (let times = 0; times < 20; times += 1) {
      client.read(10);
      await delay(LIMIT_MS / 10);
    }
    // The client notices the end only after it has read all received bytes.
    const closed = once(client, 'close');
    client.resume();
    await closed;
    expect(client.bytesRead).toBeLessThan(LARGE.length);
  });

  it('the send timeout does not include the time to compute a response or the time between responses', async () => {
    client.setEncoding('utf8');
    for (const path of ['/slow', '/', '/slow']) {
      ask(path);
      const [text] = await once(client, 'data');
      expect(text).toMatch(/^HTTP\/1\.1 200 [\s\S]*small$/);
      await delay(2 * LIMIT_MS);
    }
    expect(client.readableEnded).toBe(false);
  });
});

describe('the bytes of unsent responses', () => {
  let inFlight: ByteBudget;
  let clients: Socket[];

  beforeEach(async () => {
    // Room for two responses of one account, and for eight in total.
    inFlight = responseBudget(8 * RESPONSE.length + 8);
    clients = [];
    const app = express();
    app.get('/:account/:caller', (request, response) => {
      try {
        sendJson(inFlight, request.params.account, request, response, Buffer.from(RESPONSE));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        response.status(error.status).set(error.headers).end(error.code);
      }
    });
    server = await startServer(app, { port: 0, log: pino({ level: 'silent' }) });
  });
  afterEach(() => {
    for (const client of clients) client.destroy();
  });

  const request = (caller: string) => `GET /${caller} HTTP/1.1\r\nHost: x\r\n\r\n`;

  /** Reads only the status line of the first response. */
  async function neverReads(...callers: string[]): Promise<string> {
    const client = connect(server.port, '127.0.0.1');
    clients.push(client);
    client.on('error', () => undefined);
    client.write(callers.map(request).join(''));
    await once(client, 'readable');
    return String(client.read(12) ?? '').slice(9);
  }

  async function reads(caller: string): Promise<string> {
    const result = await fetch(`http://127.0.0.1:${server.port}/${caller}`);
    return `${result.status} ${(await result.text()).length}`;
  }

  const denial = async (caller: string) => {
    const result = await fetch(`http://127.0.0.1:${server.port}/${caller}`);
    return [result.status, await result.text(), result.headers.get('retry-after')];
  };

  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise((resolve) => setImmediate(resolve));
  };

  it('unread responses of one account are limited, across its keys, and other accounts are not affected', async () => {
    expect([await neverReads('acme/ann'), await neverReads('acme/ben')]).toEqual(['200', '200']);
    expect(await denial('acme/cat')).toEqual([429, 'too_many_unread_responses', '5']);
    expect(await reads('zeta/ann')).toBe(`200 ${RESPONSE.length}`);
  });

  it('unread responses of all accounts together are limited', async () => {
    for (const caller of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
      expect(await neverReads(`${caller}/ann`)).toBe('200');
    expect(await denial('i/ann')).toEqual([503, 'server_busy', '5']);
    expect(inFlight.total).toBe(8 * RESPONSE.length);
  });

  it('unread responses are not counted after their connection is closed, including pipelined responses', async () => {
    await neverReads('acme/ann', 'zeta/ben', 'beta/cat');
    await until(() => inFlight.total > 0);
    for (const client of clients) client.destroy();
    await until(() => inFlight.total === 0);
    expect(await reads('acme/ann')).toBe(`200 ${RESPONSE.length}`);
  });

  it('a response larger than the share of its account is sent only if the account has no other unread response', async () => {
    inFlight = responseBudget(RESPONSE.length + 8);
    expect(await neverReads('acme/ann')).toBe('200');
    expect(await denial('acme/ben')).toEqual([429, 'too_many_unread_responses', '5']);
  });

  it('responses are not counted after they were read', async () => {
    for (let times = 0; times < 4; times += 1) expect(await reads('acme/ann')).toBe(`200 ${RESPONSE.length}`);
    await until(() => inFlight.total === 0);
  });
});
