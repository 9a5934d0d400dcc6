/**
 * Redis with exactly the users of redis/users.conf, as docker-compose.yml starts it, keeps everything when it is started again. On the
 * server of PATH; METERLINE_TEST_REDIS_SERVERS names more, separated by colons (test/containers/redis-servers.sh has two).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { QUEUE_NAME } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { runCommand } from '../cli/run-command.js';
import { usageEvents } from '../harness/events.js';
import { until } from '../harness/queue.js';
import { type RedisUser, urlOfUser } from '../harness/redis-users.js';
import { killServices, startCollector } from '../harness/services.js';

const USERS = fileURLToPath(new URL('../../redis/users.conf', import.meta.url));
const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'];
const SERVERS = ['redis-server', ...(process.env['METERLINE_TEST_REDIS_SERVERS']?.split(':') ?? [])];

afterAll(killServices);

describe.each(SERVERS)('%s', (binary) => {
  let directory: string;
  let server: ChildProcess;
  let log = '';
  let port: number;
  const urlOf = (user: RedisUser) => urlOfUser(`redis://127.0.0.1:${port}`, user);

  async function start(users = USERS): Promise<void> {
    server = spawn(binary, [users, '--port', String(port), '--bind', '127.0.0.1', '--dir', directory, ...DURABLE]);
    for (const output of [server.stdout, server.stderr]) output?.on('data', (text) => (log += String(text)));
    await until('Redis has loaded its data', 30_000, () =>
      as('admin', (redis) => redis.ping()).then(Boolean, () => false),
    );
  }

  async function stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const ended = once(server, 'exit');
    server.kill(signal);
    await ended;
  }

  async function as<T>(user: RedisUser, work: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(urlOf(user), { lazyConnect: true, retryStrategy: () => null, disconnectTimeout: 1 });
    redis.on('error', () => undefined);
    try {
      await redis.connect();
      return await work(redis);
    } finally {
      redis.disconnect();
    }
  }

  /** Every key with all that it holds, by name. */
  const contents = () =>
    as('admin', async (redis) => {
      const value = async (name: string) => {
        const type = await redis.type(name);
        if (type === 'hash') return redis.hgetall(name);
        if (type === 'list') return redis.lrange(name, 0, -1);
        if (type === 'zset') return redis.zrange(name, '0', '-1', 'WITHSCORES');
        if (type === 'stream') return redis.xrange(name, '-', '+');
        return redis.get(name);
      };
      const names = (await redis.keys('*')).sort();
      return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await value(name)])));
    });

  /** Jobs that wait, that are delayed, and one that was taken; API keys; a paused queue. */
  async function fill(): Promise<void> {
    const created = await runCommand(['keys', 'create', '--account', 'acme', '--role', 'admin'], {
      env: { REDIS_URL: urlOf('operator') },
    });
    expect(created.code).toBe(0);
    const producer = new Queue(QUEUE_NAME, { connection: { url: urlOf('producer') } });
    const worker = new Queue(QUEUE_NAME, { connection: { url: urlOf('worker') } });
    const operator = new Queue(QUEUE_NAME, { connection: { url: urlOf('operator') } });
    for (const events of [usageEvents(1, 3), usageEvents(4, 2)]) await producer.add('usage', { events });
    await producer.add('usage', { events: usageEvents(6, 1) }, { delay: 3_600_000 });
    await worker.upsertJobScheduler('seal', { every: 3_600_000 });
    await operator.pause();
    await Promise.all([producer, worker, operator].map((queue) => queue.close()));
  }

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'meterline-redis-restart-'));
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const address = probe.address();
    port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    await new Promise((resolve) => probe.close(resolve));
    log = '';
    await start();
  });
  afterEach(async () => {
    if (server.exitCode === null && server.signalCode === null) await stop('SIGKILL');
    await rm(directory, { recursive: true });
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'a Redis that %s ended has all jobs, keys and its paused queue when it is started again',
    async (signal) => {
      await fill();
      const before = await contents();
      expect(Object.keys(before).length).toBeGreaterThan(10);
      await stop(signal);
      await start();
      expect(await contents()).toEqual(before);
      expect(log).not.toContain('CRITICAL');
    },
  );

  it('a Redis that has rewritten its append-only file has what was written before and after it', async () => {
    await fill();
    await as('admin', (redis) => redis.bgrewriteaof());
    await until('the file is rewritten', 30_000, async () =>
      (await as('admin', (redis) => redis.info('persistence'))).includes('aof_rewrite_in_progress:0'),
    );
    await fill();
    const before = await contents();
    await stop('SIGKILL');
    await start();
    expect(await contents()).toEqual(before);
  });

  describe('a collector', () => {
    const readiness = async (url: string) => {
      const response = await fetch(`${url}/readyz`, { headers: { connection: 'close' } });
      return `${response.status} ${await response.text()}`;
    };
    const becomes = (url: string, text: string) =>
      until(`the collector says ${text}`, 30_000, async () => (await readiness(url)).includes(text));

    it('a collector takes nothing, and says why, while Redis has left something out of its data', async () => {
      const collector = await startCollector({ REDIS_URL: urlOf('collector') });
      expect(await readiness(collector.url)).toBe('200 {"status":"ready"}');
      const before = await contents();
      const lacking = join(directory, 'users.conf');
      await writeFile(lacking, (await readFile(USERS, 'utf8')).replace(/^user default off .*$/m, 'user default off'));
      await stop('SIGKILL');
      await start(lacking);
      await becomes(collector.url, 'give its user default all rights');
      expect(await readiness(collector.url)).toMatch(/^503 /);
      await expect(startCollector({ REDIS_URL: urlOf('collector') })).rejects.toThrow('collector was not ready');

      await stop('SIGTERM');
      await start();
      await becomes(collector.url, '"status":"ready"');
      expect(Object.keys(await contents())).toEqual(Object.keys(before));
      expect(await collector.stop()).toBe(0);
    });

    it('a collector takes nothing, and says why, when Redis comes back empty', async () => {
      const collector = await startCollector({ REDIS_URL: urlOf('collector') });
      await stop('SIGKILL');
      await rm(directory, { recursive: true });
      await mkdir(directory);
      await start();
      await becomes(collector.url, 'has lost its data since this collector started');
      expect(await readiness(collector.url)).toMatch(/^503 /);
      expect(await collector.stop()).toBe(0);

      const next = await startCollector({ REDIS_URL: urlOf('collector') });
      expect(await readiness(next.url)).toMatch(/^200 /);
      expect(await next.stop()).toBe(0);
    });
  });

  it('nobody can log in as the user default, with or without a password', async () => {
    const socket = connect(port, '127.0.0.1');
    const said = [];
    for (const line of ['GET x', 'AUTH x', 'AUTH default x', 'AUTH default ""']) {
      socket.write(`${line}\r\n`);
      said.push(String(await once(socket, 'data')).split(' ')[0]);
    }
    socket.destroy();
    expect(said).toEqual(['-NOAUTH', '-WRONGPASS', '-WRONGPASS', '-WRONGPASS']);
  });
});
