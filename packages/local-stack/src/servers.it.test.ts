import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { type RunningClickHouse, startClickHouse } from './clickhouse.js';
import { findFreePort, isPortFree, LOOPBACK } from './ports.js';
import { startRedis } from './redis.js';
import { planShards, startServers } from './servers.js';

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

/** One that has ended but was not waited for does not run. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return /^[^Z\s]/.test(stdout);
}

/** As far as the system shows it. */
async function holdsLock(pid: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const files = (await readdir(`/proc/${pid}/fd`)).map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => ''));
  return (await Promise.all(files)).some((file) => file.endsWith('/stack.lock'));
}

describe('startServers', () => {
  it('answers, and leaves neither processes, ports nor its temporary directory when it stops', async () => {
    const stack = await startServers();
    const processes = [stack.clickhouse.pid, stack.redis.pid];
    expect(await sql(stack.clickhouse, 'SELECT 1 + 1')).toBe('2');
    expect(await redisCommand(stack.redis.url, 'ECHO', 'hello')).toBe('hello');
    expect(processes.map(isRunning)).toEqual([true, true]);
    expect(await Promise.all(processes.map(holdsLock))).toEqual([true, true]);

    await stack.stop();
    await stack.stop();
    expect(processes.map(isRunning)).toEqual([false, false]);
    expect(await Promise.all([stack.clickhouse.httpPort, stack.redis.port].map((port) => isPortFree(port)))).toEqual([
      true,
      true,
    ]);
    expect(existsSync(stack.directory.path)).toBe(false);
  });

  it('keeps what was written over a stop and a start', async () => {
    const first = await startServers({ dataDir });
    await sql(first.clickhouse, 'CREATE DATABASE kept');
    await sql(first.clickhouse, 'CREATE TABLE kept.t (x Int32) ENGINE = MergeTree ORDER BY x');
    await sql(first.clickhouse, 'INSERT INTO kept.t VALUES (42)');
    await redisCommand(first.redis.url, 'SET', 'key', 'value');
    await first.stop();

    const second = await startServers({ dataDir });
    expect(await sql(second.clickhouse, 'SELECT x FROM kept.t')).toBe('42');
    expect(await redisCommand(second.redis.url, 'GET', 'key')).toBe('value');
    await second.stop();
  });

  it('leaves no server behind when the process that started it is killed, and its data can be used again', async () => {
    const index = new URL('../dist/index.js', import.meta.url).href;
    const script = `
      import { startServers } from ${JSON.stringify(index)};
      const { clickhouse, redis } = await startServers({ dataDir: ${JSON.stringify(dataDir)} });
      console.log(JSON.stringify({ pids: [clickhouse.pid, redis.pid], ports: [clickhouse.httpPort, redis.port] }));`;
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface(owner.stdout), 'line');
    const started = z.object({ pids: z.array(z.int()), ports: z.array(z.int()) }).parse(JSON.parse(String(line)));
    expect(started.pids.map(isRunning)).toEqual([true, true]);

    owner.kill('SIGKILL');
    await once(owner, 'exit');
    const successor = await startServers({ dataDir });
    expect(started.pids.map(isRunning)).toEqual([false, false]);
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

  it('has the users of redis/users.conf alone, evicts nothing, and logs every write', async () => {
    const redis = await startRedis({ dataDir, queuePrefix: 'mine' });
    const users = String(await redisCommand(redis.url, 'ACL', 'LIST'));
    expect([...users.matchAll(/user (\w+) (on|off)/g)].map(([, user, state]) => `${user} ${state}`).sort()).toEqual([
      ...[
        'admin on',
        'alerts on',
        'collector on',
        'default off',
        'operator on',
        'producer on',
        'query on',
        'worker on',
      ],
    ]);
    expect(await redisCommand(redis.urls.worker, 'LLEN', 'mine:usage-events:wait')).toBe(0);
    await expect(redisCommand(redis.urls.worker, 'LLEN', 'other:usage-events:wait')).rejects.toThrow('NOPERM');
    const settings = await redisCommand(redis.url, 'CONFIG', 'GET', 'maxmemory-policy', 'append*');
    expect(settings).toEqual(expect.arrayContaining(['noeviction', 'appendonly', 'yes', 'appendfsync', 'always']));
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

describe('the plan of several ClickHouse servers', () => {
  const numbers = async (count: number) => (await planShards(count, dataDir)).map((shard) => shard?.number);

  it('one server is no shard, and several are numbered from 1, each with the addresses of all', async () => {
    expect(await planShards(1, dataDir)).toEqual([undefined]);
    const [first, second] = await planShards(2, dataDir);
    expect([first?.number, second?.number]).toEqual([1, 2]);
    expect(first?.tcpPorts).toEqual(second?.tcpPorts);
    expect(new Set(first?.tcpPorts).size).toBe(2);
  });

  it('as many as before find their data again', async () => {
    expect(await numbers(3)).toEqual([1, 2, 3]);
    expect(await numbers(3)).toEqual([1, 2, 3]);
  });

  it('another number than before is refused: events would be looked for where they are not', async () => {
    await planShards(2, dataDir);
    const before = await readdir(dataDir);
    const refused = { code: 'data_directory_unusable', message: expect.stringContaining('Start with --shards 2,') };
    for (const count of [1, 3]) await expect(planShards(count, dataDir)).rejects.toMatchObject(refused);
    expect(await readdir(dataDir)).toEqual(before);
  });

  it('shards are refused where one server was', async () => {
    await mkdir(join(dataDir, 'clickhouse'));
    await expect(planShards(2, dataDir)).rejects.toThrow('has the data of 1 ClickHouse server');
    expect(await numbers(1)).toEqual([undefined]);
  });
});
