import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { listening } from '../../../test/harness/listening.js';
import { openAdminServer } from './admin-server.js';
import { DrainingServer } from './draining.js';
import { createLog } from './log.js';

const DEADLINE_MS = 60_000;
/** More than the sockets of both sides take by themselves: up to 4 MB (tcp(7), `tcp_wmem`). */
const LARGE = Buffer.alloc(8_000_000, 'x');

let server: Server;
let port: number;
let draining: DrainingServer;
let clients: Socket[];

beforeEach(async () => {
  clients = [];
  server = createServer((request, response) => response.end(request.url === '/large' ? LARGE : 'small'));
  draining = new DrainingServer(server);
  port = Number(new URL(await listening(server)).port);
});
afterEach(() => {
  for (const client of clients) client.destroy();
  server.closeAllConnections();
  server.close();
});

async function open(): Promise<Socket> {
  const client = connect(port, '127.0.0.1');
  clients.push(client);
  await once(client, 'connect');
  return client;
}

const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

interface TestResponse {
  /** Whether it says that its connection closes. */
  readonly closes: boolean;
  readonly length: number;
}

/** Reads one whole response. Rejects when the connection ends before. */
function readResponse(client: Socket): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    let received = 0;
    let headers = '';
    const onEnd = () => reject(new Error(`the connection ended after ${received} bytes`));
    const onData = (chunk: Buffer) => {
      received += chunk.length;
      // The headers come in one piece.
      if (headers === '') headers = chunk.toString('latin1').split('\r\n\r\n', 1)[0] ?? '';
      const length = Number(/content-length: (\d+)/i.exec(headers)?.[1]);
      if (received < headers.length + 4 + length) return;
      client.off('data', onData).off('end', onEnd).off('error', reject);
      resolve({ closes: /^connection: close$/im.test(headers), length });
    };
    client.on('data', onData).once('end', onEnd).once('error', reject).resume();
  });
}

it('a draining server sends responses completely', async () => {
  const client = await open();
  client.write(ask('/large'));
  await once(client, 'readable');
  const drained = draining.drain(DEADLINE_MS);
  expect(await readResponse(client)).toMatchObject({ length: LARGE.length });
  await drained;
});

it('a draining server responds to every request of open connections, and then closes them', async () => {
  let responded = 0;
  const useUntilClosed = async () => {
    const client = await open();
    let closes = false;
    while (!closes) {
      client.write(ask('/'));
      ({ closes } = await readResponse(client));
      responded += 1;
    }
  };
  const users = Promise.all(Array.from({ length: 20 }, useUntilClosed));
  while (responded < 200) await new Promise((resolve) => setImmediate(resolve));
  await Promise.all([users, draining.drain(DEADLINE_MS)]);
});

it('a draining server responds to a request that arrives in pieces', async () => {
  const [idle, client] = [await open(), await open()];
  client.write(ask('/').slice(0, 10));
  const drained = draining.drain(DEADLINE_MS);
  // Once this one is closed, so would be the other if it were idle.
  await once(idle.resume(), 'end');
  client.write(ask('/').slice(10));
  expect(await readResponse(client)).toMatchObject({ closes: true });
  await drained;
});

it('a draining server closes connections without a request', async () => {
  const [unused, used] = [await open(), await open()];
  used.write(ask('/'));
  expect(await readResponse(used)).toMatchObject({ closes: false });
  const ends = [unused, used].map((client) => once(client.resume(), 'end'));
  await Promise.all([draining.drain(DEADLINE_MS), ...ends]);
});

it('a draining server accepts connections until the given delay is over', async () => {
  const drained = draining.drain(0, 1_000);
  const client = await open();
  client.write(ask('/'));
  expect(await readResponse(client)).toMatchObject({ closes: true });
  await drained;
  await expect(once(connect(port, '127.0.0.1'), 'connect')).rejects.toThrow('ECONNREFUSED');
});

it('a draining server cuts off clients that do not read at the deadline', async () => {
  const client = await open();
  client.write(ask('/large'));
  await once(client, 'readable');
  await draining.drain(100);
  expect(client.bytesRead).toBeLessThan(LARGE.length);
});

it('the admin port returns 503 for a page that fails, and logs the path without the query string', async () => {
  const lines: string[] = [];
  const log = createLog('meterline-test', 'info', { write: (line) => void lines.push(line) });
  const health = () => Promise.reject(new Error('Redis did not answer'));
  const metrics = new Registry();
  const server = await openAdminServer({ ADMIN_PORT: 0, LISTEN_HOST: '127.0.0.1' }, { health, metrics }, log);
  try {
    const status = async (path: string) => (await fetch(`http://127.0.0.1:${server?.port}${path}`)).status;
    expect(await status('/metrics?match=up')).toBe(200);
    expect(await status('/healthz?token=s3cret')).toBe(503);
    expect(await status('/other')).toBe(404);
  } finally {
    await server?.close();
  }
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ event: 'admin_request_failed', path: '/healthz' }]);
  expect(lines.join()).not.toContain('s3cret');
});
