import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import express from 'express';
import { pino } from 'pino';
import { ApiError } from './http/errors.js';
import { ResponseBudget, type RunningServer, startServer } from './server.js';

/** More than the sockets of both sides take by themselves: up to 4 MB (tcp(7), `tcp_wmem`). */
const LARGE = Buffer.alloc(8_000_000, 'x');
const RESPONSE = JSON.stringify('x'.repeat(6_000_000));
const LIMIT_MS = 200;

let server: RunningServer;
afterEach(() => server.close(0));

describe('the time for sending', () => {
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

  it('a response that is not read in time is cut off, and with it those that wait behind it', async () => {
    ask('/large', '/large', '/large');
    await once(client, 'readable');
    await delay(2 * LIMIT_MS);
    // Only now is it read: what the system had, and then nothing.
    let received = 0;
    client.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    await once(client, 'close');
    expect(received).toBeLessThan(LARGE.length);
  });

  it('a response that is read bit by bit is cut off too', async () => {
    ask('/large');
    await once(client, 'readable');
    for (let times = 0; times < 20; times += 1) {
      client.read(10);
      await delay(LIMIT_MS / 10);
    }
    // The end is noticed only when all is read that has arrived.
    const closed = once(client, 'close');
    client.resume();
    await closed;
    expect(client.bytesRead).toBeLessThan(LARGE.length);
  });

  it('time to compute a response and time between responses do not count', async () => {
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

describe('the bytes that are not sent yet', () => {
  let inFlight: ResponseBudget;
  let clients: Socket[];

  beforeEach(async () => {
    // Room for two responses to one account and for eight to all.
    inFlight = new ResponseBudget(8 * RESPONSE.length + 8);
    clients = [];
    const app = express();
    app.get('/:account/:caller', (request, response) => {
      try {
        inFlight.send(request, response, request.params.account, Buffer.from(RESPONSE));
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

  /** A client that reads the status line of its first response and nothing else. */
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

  const refusal = async (caller: string) => {
    const result = await fetch(`http://127.0.0.1:${server.port}/${caller}`);
    return [result.status, await result.text(), result.headers.get('retry-after')];
  };

  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise((resolve) => setImmediate(resolve));
  };

  it('responses that are not read of one account are bounded, whatever its keys, and others get theirs', async () => {
    expect([await neverReads('acme/ann'), await neverReads('acme/ben')]).toEqual(['200', '200']);
    expect(await refusal('acme/cat')).toEqual([429, 'too_many_unread_responses', '5']);
    expect(await reads('zeta/ann')).toBe(`200 ${RESPONSE.length}`);
  });

  it('responses that are not read of all are bounded', async () => {
    for (const caller of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
      expect(await neverReads(`${caller}/ann`)).toBe('200');
    expect(await refusal('i/ann')).toEqual([503, 'server_busy', '5']);
    expect(inFlight.total).toBe(8 * RESPONSE.length);
  });

  it('responses that are not read count no longer when their clients have gone, those behind another one of the same connection too', async () => {
    await neverReads('acme/ann', 'zeta/ben', 'beta/cat');
    await until(() => inFlight.total > 0);
    for (const client of clients) client.destroy();
    await until(() => inFlight.total === 0);
    expect(await reads('acme/ann')).toBe(`200 ${RESPONSE.length}`);
  });

  it('responses that are not read count no longer when they were read', async () => {
    for (let times = 0; times < 4; times += 1) expect(await reads('acme/ann')).toBe(`200 ${RESPONSE.length}`);
    await until(() => inFlight.total === 0);
  });
});
