import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { type RunningClickHouse, startClickHouse } from './clickhouse.js';
import { identifyProcess, isRunning, type ProcessIdentity } from './data-directory.js';
import { startLocalStack } from './local-stack.js';
import { findFreePort, isPortFree, LOOPBACK } from './ports.js';
import { startRedis } from './redis.js';

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'meterline-stack-'));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

async function sql({ url, user, password }: RunningClickHouse, statement: string): Promise<string> {
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const headers = { connection: 'close', authorization };
  const response = await fetch(url, { method: 'POST', body: statement, headers });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text.trim();
}

async function redisCommand(url: string, command: string, ...args: string[]): Promise<unknown> {
  const redis = new Redis(url);
  try {
    return await redis.call(command, ...args);
  } finally {
    redis.disconnect();
  }
}

async function untilGone(processes: ProcessIdentity[]): Promise<void> {
  for (const each of processes) while (await isRunning(each)) await sleep(20);
}

describe('startLocalStack', () => {
  it('answers, and leaves neither processes, ports nor its temporary directory when it stops', async () => {
    const stack = await startLocalStack();
    const processes = await Promise.all([stack.clickhouse.pid, stack.redis.pid].map(identifyProcess));
    expect(await sql(stack.clickhouse, 'SELECT 1 + 1')).toBe('2');
    expect(await redisCommand(stack.redis.url, 'ECHO', 'hello')).toBe('hello');
    expect(await Promise.all(processes.map(isRunning))).toEqual([true, true]);

    await stack.stop();
    await stack.stop();
    expect(await Promise.all(processes.map(isRunning))).toEqual([false, false]);
    expect(await Promise.all([stack.clickhouse.httpPort, stack.redis.port].map((port) => isPortFree(port)))).toEqual([
      true,
      true,
    ]);
    expect(existsSync(stack.directory.path)).toBe(false);
  });

  it('keeps what was written over a stop and a start', async () => {
    const first = await startLocalStack({ dataDir });
    await sql(first.clickhouse, 'CREATE DATABASE kept');
    await sql(first.clickhouse, 'CREATE TABLE kept.t (x Int32) ENGINE = MergeTree ORDER BY x');
    await sql(first.clickhouse, 'INSERT INTO kept.t VALUES (42)');
    await redisCommand(first.redis.url, 'SET', 'key', 'value');
    await first.stop();

    const second = await startLocalStack({ dataDir });
    expect(await sql(second.clickhouse, 'SELECT x FROM kept.t')).toBe('42');
    expect(await redisCommand(second.redis.url, 'GET', 'key')).toBe('value');
    await second.stop();
  });

  it('refuses a data directory that a stack is using, and does that stack no harm', async () => {
    const first = await startLocalStack({ dataDir });
    await expect(startLocalStack({ dataDir })).rejects.toMatchObject({ code: 'directory_in_use' });
    expect(await sql(first.clickhouse, 'SELECT 1')).toBe('1');
    expect(await redisCommand(first.redis.url, 'PING')).toBe('PONG');
    await first.stop();
  });

  it('leaves no server behind when the process that started it is killed, and its data can be used again', async () => {
    const index = new URL('../../dist/index.js', import.meta.url).href;
    const script = `
      import { startLocalStack } from ${JSON.stringify(index)};
      const { clickhouse, redis } = await startLocalStack({ dataDir: ${JSON.stringify(dataDir)} });
      console.log(JSON.stringify({ pids: [clickhouse.pid, redis.pid], ports: [clickhouse.httpPort, redis.port] }));`;
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface(owner.stdout), 'line');
    const started = z.object({ pids: z.array(z.int()), ports: z.array(z.int()) }).parse(JSON.parse(String(line)));
    const servers = await Promise.all(started.pids.map(identifyProcess));
    expect(await Promise.all(servers.map(isRunning))).toEqual([true, true]);

    owner.kill('SIGKILL');
    await once(owner, 'exit');
    const successor = await startLocalStack({ dataDir });
    await untilGone(servers);
    expect(await Promise.all(started.ports.map((port) => isPortFree(port)))).toEqual([true, true]);
    expect(await redisCommand(successor.redis.url, 'PING')).toBe('PONG');
    await successor.stop();
  });
});

describe('startClickHouse', () => {
  it('comes back after kill -9 on the same ports with the same rows', async () => {
    const first = await startClickHouse({ dataDir });
    await sql(first, 'CREATE DATABASE kept');
    await sql(
      first,
      'CREATE TABLE kept.t (x Int32) ENGINE = MergeTree ORDER BY x SETTINGS fsync_after_insert = 1, fsync_part_directory = 1',
    );
    await sql(first, 'INSERT INTO kept.t VALUES (1), (2)');
    await first.kill();
    expect(await first.exited).toMatchObject({ signal: 'SIGKILL' });

    const second = await startClickHouse({ dataDir, httpPort: first.httpPort });
    expect(second.url).toBe(first.url);
    expect(await sql(second, 'SELECT sum(x) FROM kept.t')).toBe('3');
    await second.stop();
  });

  it('names its log when it cannot start', async () => {
    const added = join(dataDir, 'clickhouse-users.d');
    await mkdir(added);
    await writeFile(join(added, 'damaged.xml'), '<clickhouse');
    await expect(startClickHouse({ dataDir })).rejects.toMatchObject({
      code: 'exited_early',
      message: expect.stringContaining(`The end of ${join(dataDir, 'clickhouse.log')}:`),
    });
  });
});

describe('startRedis', () => {
  it('comes back after kill -9 on the same port with every acknowledged write', async () => {
    const first = await startRedis({ dataDir });
    await redisCommand(first.url, 'SET', 'key', 'value');
    await first.kill();
    await first.stop();

    const second = await startRedis({ dataDir, port: first.port });
    expect(await redisCommand(second.url, 'GET', 'key')).toBe('value');
    await second.stop();
  });

  it('never evicts and logs every write', async () => {
    const redis = await startRedis({ dataDir });
    expect(await redisCommand(redis.url, 'CONFIG', 'GET', 'maxmemory-policy')).toEqual([
      'maxmemory-policy',
      'noeviction',
    ]);
    expect(await redisCommand(redis.url, 'CONFIG', 'GET', 'appendonly')).toEqual(['appendonly', 'yes']);
    await redis.stop();
    expect(await readFile(redis.logFile, 'utf8')).toMatch(/Ready to accept connections/);
  });
});

describe('a port that was asked for', () => {
  it('is refused in one line when something else uses it', async () => {
    const port = await findFreePort();
    const other = createServer().listen(port, LOOPBACK);
    await once(other, 'listening');
    const message = expect.stringMatching(
      new RegExp(`^Port ${port} on 127\\.0\\.0\\.1, .* is in use by another process\\.$`),
    );
    await expect(startRedis({ dataDir, port })).rejects.toMatchObject({ code: 'port_in_use', message });
    await expect(startClickHouse({ dataDir, httpPort: port })).rejects.toMatchObject({ code: 'port_in_use', message });
    other.close();
  });
});
