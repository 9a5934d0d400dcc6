/**
 * A worker that cannot start says why in one line; a worker that can start also stops. Most tests start the worker in this
 * process; tests of the output and exit code start a process.
 */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, DEFAULT_PRICE_BOOK_FILE } from '@meterline/catalog';
import { findFreePort } from '@meterline/local-stack';
import { StartError } from '@meterline/service';
import { noTracing } from '@meterline/service/tracing';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { readEnv } from '../../services/ingest/src/env.js';
import { startService } from '../../services/ingest/src/start.js';
import { killServices, launchService, type ServiceEnvironment, startIngest } from '../services.js';
import { testRedisUrl, uniquePrefix } from '../stack.js';
import { drained, enqueueData, openPipeline, type Pipeline, stored, usageEvent } from './pipeline.js';

let pipeline: Pipeline;
let directory: string;
beforeAll(async () => {
  [pipeline, directory] = await Promise.all([openPipeline(), mkdtemp(join(tmpdir(), 'meterline-start-up-'))]);
});
afterEach(killServices);
afterAll(async () => {
  await pipeline.close();
  await rm(directory, { recursive: true });
});

/**
 * Only for starts that fail before the worker has opened anything that must be closed. Not for errors of Node itself,
 * whose text differs under jest.
 *
 * @returns why the start failed
 */
async function startFault(changes: ServiceEnvironment): Promise<string> {
  const start = startService(readEnv({ ...pipeline.env, ...changes }), pino({ level: 'silent' }), noTracing());
  const fault = await start.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(fault instanceof StartError)) throw new Error('not a start that failed for a known reason', { cause: fault });
  return fault.message;
}

/** @returns the one line that the worker's process prints */
async function failedStart(changes: ServiceEnvironment): Promise<string> {
  const worker = launchService('ingest', { ...pipeline.env, ...changes });
  expect(await worker.exited).toEqual({ code: 1, signal: null });
  expect(worker.errorLines()).toHaveLength(1);
  return worker.errorLines()[0] ?? '';
}

async function file(name: string, text: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, text);
  return path;
}

describe('ingest, started where it cannot work', () => {
  it('names a Redis that does not answer, and why', async () => {
    const url = `redis://127.0.0.1:${await findFreePort()}`;
    expect(await failedStart({ REDIS_URL: url })).toContain(
      `Redis at ${new URL(url).host} does not answer (connect ECONNREFUSED`,
    );
  });

  it('does not wait forever for a Redis that never answers, and does not show its password', async () => {
    const silent = createTcpServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    try {
      const line = await startFault({ REDIS_URL: `redis://:secret@127.0.0.1:${port}` });
      expect(line).toContain(`Redis at 127.0.0.1:${port} does not answer`);
      expect(line).not.toContain('secret');
    } finally {
      silent.close();
    }
  });

  it('names a ClickHouse that does not answer, and why', async () => {
    const url = `http://127.0.0.1:${await findFreePort()}`;
    expect(await failedStart({ CLICKHOUSE_URL: url })).toContain(
      `ClickHouse at ${new URL(url).host} does not answer (connect ECONNREFUSED`,
    );
  });

  it('names a user whom ClickHouse does not know', async () => {
    expect(await startFault({ CLICKHOUSE_USER: 'nobody' })).toMatch(
      /ClickHouse at .* refuses \(.*Authentication failed/,
    );
  });

  it.each([
    [404, ''],
    [200, 'OK'],
  ])('names a server that answers %d %j and is no ClickHouse', async (status, page) => {
    const server = createServer((_request, response) => response.writeHead(status).end(page)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const line = await startFault({ CLICKHOUSE_URL: `http://${host}` });
      const reason = status === 200 ? ' (SELECT 1 did not return 1)' : '';
      expect(line).toBe(`ClickHouse at ${host} does not answer as ClickHouse does${reason}`);
    } finally {
      server.close();
    }
  });

  it('names a server that is not Redis', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      const line = await startFault({ REDIS_URL: `redis://127.0.0.1:${port}` });
      expect(line).toBe(`what answers at 127.0.0.1:${port} is not Redis`);
    } finally {
      server.close();
    }
  });

  it('names a user whom Redis does not know', async () => {
    const host = new URL(testRedisUrl()).host;
    const line = await startFault({ REDIS_URL: `redis://nobody:secret@${host}` });
    expect(line).toContain(`Redis at ${host} refuses (WRONGPASS`);
    expect(line).not.toContain('secret');
  });

  it('names the command that it needs to know which Redis it is', async () => {
    const redis = new Redis(testRedisUrl());
    const user = uniquePrefix();
    await redis.call('ACL', 'SETUSER', user, 'on', '>secret', '~*', '+@all', '-info');
    // ioredis says the same there, in its own words.
    const said = jest.spyOn(console, 'warn').mockReturnValue();
    try {
      const { host } = new URL(testRedisUrl());
      const line = await startFault({ REDIS_URL: `redis://${user}:secret@${host}` });
      expect(line).toMatch(/^Redis does not tell its version; its user needs the command INFO \(NOPERM .*\)$/);
      expect(said).toHaveBeenCalledWith(expect.stringContaining('INFO'));
    } finally {
      said.mockRestore();
      await redis.call('ACL', 'DELUSER', user);
      redis.disconnect();
    }
  });

  it('does not use another database of Redis when the given one does not exist', async () => {
    const host = new URL(testRedisUrl()).host;
    expect(await startFault({ REDIS_URL: `${testRedisUrl()}/99` })).toContain(
      `Redis at ${host} refuses (ERR DB index is out of range)`,
    );
  });

  it('names every wrong variable, each on its own line', async () => {
    const worker = launchService('ingest', {
      ...pipeline.env,
      INGEST_BATCH_ROWS: '0',
      REDIS_URL: 'localhost',
      CLICKHOUSE_URL: 'http://127.0.0.1:8123/system',
    });
    expect(await worker.exited).toEqual({ code: 1, signal: null });
    expect(worker.errorLines()).toEqual([
      'meterline-ingest: REDIS_URL must be a URL such as redis://127.0.0.1:6379',
      'meterline-ingest: CLICKHOUSE_URL must be a URL such as http://127.0.0.1:8123 and nothing more: user, password and database are named by CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE',
      'meterline-ingest: INGEST_BATCH_ROWS must be a whole number from 1 to 1000000',
    ]);
  });

  it('names a price book that does not exist', async () => {
    const path = join(directory, 'absent.json');
    expect(await failedStart({ PRICE_BOOK: path })).toContain(`PRICE_BOOK ${path} cannot be used: ENOENT`);
  });

  it('names a price book that is not JSON, however many lines it has', async () => {
    const path = await file('text.json', 'not json\nat all\n');
    expect(await failedStart({ PRICE_BOOK: path })).toContain(`PRICE_BOOK ${path} cannot be used: Unexpected token`);
  });

  it('names the dimension that a price book leaves without a price', async () => {
    const prices = DEFAULT_PRICE_BOOK_FILE.prices.filter(
      ({ billingDimension }) => billingDimension !== 'volume_storage_gbs',
    );
    const path = await file('gap.json', JSON.stringify({ ...DEFAULT_PRICE_BOOK_FILE, version: 1, prices }));
    expect(await startFault({ PRICE_BOOK: path })).toContain('no price for volume_storage_gbs');
  });

  it('refuses other prices under a version that is in use', async () => {
    await registerPriceBook(oneServer(pipeline.warehouse), DEFAULT_PRICE_BOOK);
    const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) => ({ ...price, amount: '1' }));
    const path = await file('conflict.json', JSON.stringify({ ...DEFAULT_PRICE_BOOK_FILE, prices }));
    expect(await failedStart({ PRICE_BOOK: path })).toContain('price book version 0 is already in use');
  });

  it('names an admin port that is taken', async () => {
    const taken = createServer().listen(0);
    const { port } = taken.address() as AddressInfo;
    try {
      expect(await failedStart({ ADMIN_PORT: String(port) })).toContain(
        `cannot listen on port ${port}; free it or set ADMIN_PORT to another (listen EADDRINUSE`,
      );
    } finally {
      taken.close();
    }
  });
});

describe('ingest, told to listen on an address that this machine does not have', () => {
  it('says so', async () => {
    expect(await failedStart({ ADMIN_PORT: '0', LISTEN_HOST: '192.0.2.1' })).toContain(
      'cannot listen on port 0 of 192.0.2.1; free it or set ADMIN_PORT to another, or LISTEN_HOST to an address of this machine',
    );
  });
});

describe('ingest, idle', () => {
  it('answers the health check and ends at once with code 0', async () => {
    const port = await findFreePort();
    const worker = await startIngest({ ...pipeline.env, ADMIN_PORT: String(port), SHUTDOWN_TIMEOUT_MS: '600000' });
    const health = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect([health.status, await health.json()]).toMatchObject([200, { waitingJobs: 0, outage: false }]);
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);

    // Long before its deadline, which the test would not wait for.
    expect(await worker.stop()).toBe(0);
    expect(worker.errorLines()).toEqual([]);
  });

  it('prices with the book that it is given', async () => {
    const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) => ({ ...price, effectiveFrom: '2026-01-01T00:00:00Z' }));
    const path = await file('dated.json', JSON.stringify({ ...DEFAULT_PRICE_BOOK_FILE, version: 2, prices }));
    await startIngest({ ...pipeline.env, PRICE_BOOK: path });
    const early = usageEvent(1, { timestamp: '2025-12-31T23:59:59.999Z' });
    await enqueueData(pipeline.queue, { events: [early, usageEvent(2)] });
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse)).toMatchObject({ events: 1 });
  });
});
