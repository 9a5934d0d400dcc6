import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { testFolder } from '../../../test/harness/test-folder.js';
import { type RunningClickHouse, startClickHouse } from './clickhouse.js';
import { DataDirectory } from './data-directory.js';
import { findFreePort, isPortFree, LOOPBACK } from './ports.js';
import { startRedis } from './redis.js';
import { planShards, startServers } from './servers.js';

const folder = testFolder('each test');

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

const arePortsFree = async (ports: readonly number[]) =>
  (await Promise.all(ports.map((port) => isPortFree(port)))).every(Boolean);

it('local servers answer, and leave neither processes, ports nor their temporary directory when they stop', async () => {
  const { clickhouse, redis, directory, stop } = await startServers();
  const processes = [clickhouse.pid, redis.pid];
  expect(await sql(clickhouse, 'SELECT 1 + 1')).toBe('2');
  expect(await redisCommand(redis.url, 'ECHO', 'hello')).toBe('hello');
  expect(processes.map(isRunning)).toEqual([true, true]);
  expect(await Promise.all(processes.map(holdsLock))).toEqual([true, true]);
  await stop();
  await stop();
  expect(processes.map(isRunning)).toEqual([false, false]);
  expect(await arePortsFree([clickhouse.httpPort, redis.port])).toBe(true);
  expect(existsSync(directory.path)).toBe(false);
});

it('local servers leave nothing behind when the process that started them is killed, and their data can be used again', async () => {
  const index = new URL('../dist/index.js', import.meta.url).href;
  const script = `
    import { startServers } from ${JSON.stringify(index)};
    const { clickhouse, redis } = await startServers({ dataDir: ${JSON.stringify(folder())} });
    console.log(JSON.stringify({ pids: [clickhouse.pid, redis.pid], ports: [clickhouse.httpPort, redis.port] }));`;
  const args = ['--input-type=module', '-e', script];
  const owner = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(createInterface(owner.stdout), 'line');
  const started = z.object({ pids: z.array(z.int()), ports: z.array(z.int()) }).parse(JSON.parse(String(line)));
  expect(started.pids.map(isRunning)).toEqual([true, true]);
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  const successor = await startServers({ dataDir: folder() });
  expect(started.pids.map(isRunning)).toEqual([false, false]);
  expect(await arePortsFree(started.ports)).toBe(true);
  expect(await redisCommand(successor.redis.url, 'PING')).toBe('PONG');
  await successor.stop();
});

it.each(['stop', 'kill'] as const)(
  'local servers keep what was acknowledged over a %s, on the same ports',
  async (end) => {
    const first = await startServers({ dataDir: folder() });
    await sql(first.clickhouse, 'CREATE DATABASE kept');
    const settings = 'SETTINGS fsync_after_insert = 1, fsync_part_directory = 1';
    await sql(first.clickhouse, `CREATE TABLE kept.t (x Int32) ENGINE = MergeTree ORDER BY x ${settings}`);
    await sql(first.clickhouse, 'INSERT INTO kept.t VALUES (1), (2)');
    await redisCommand(first.redis.url, 'SET', 'key', 'value');
    await Promise.all([first.clickhouse[end](), first.redis[end]()]);
    const signal = end === 'kill' ? 'SIGKILL' : null;
    expect(await first.clickhouse.exited).toMatchObject({ signal });
    await first.stop();

    const directory = await DataDirectory.open(folder());
    const clickhouse = await startClickHouse({ dataDir: directory, httpPort: first.clickhouse.httpPort });
    const redis = await startRedis({ dataDir: directory, port: first.redis.port });
    expect([clickhouse.url, redis.url]).toEqual([first.clickhouse.url, first.redis.url]);
    expect(await sql(clickhouse, 'SELECT sum(x) FROM kept.t')).toBe('3');
    expect(await redisCommand(redis.url, 'GET', 'key')).toBe('value');
    await Promise.all([clickhouse.stop(), redis.stop()]);
    directory.close();
  },
);

it('ClickHouse names its log when it cannot start', async () => {
  await mkdir(folder('clickhouse-users.d'));
  await writeFile(folder('clickhouse-users.d', 'damaged.xml'), '<clickhouse');
  const directory = await DataDirectory.open(folder());
  await expect(startClickHouse({ dataDir: directory })).rejects.toMatchObject({
    message: expect.stringContaining(`The end of ${folder('clickhouse.log')}:`),
  });
  directory.close();
});

it('Redis has the users of redis/users.conf alone, evicts nothing, and logs every write', async () => {
  const directory = await DataDirectory.open(folder());
  const redis = await startRedis({ dataDir: directory, queuePrefix: 'mine' });
  const users = String(await redisCommand(redis.url, 'ACL', 'LIST'));
  const on = ['admin', 'alerts', 'collector', 'operator', 'producer', 'query', 'worker'];
  expect([...users.matchAll(/user (\w+) on/g)].map(([, user]) => user).sort()).toEqual(on);
  expect(users).toContain('user default off');
  expect(await redisCommand(redis.urls.worker, 'LLEN', 'mine:usage-events:wait')).toBe(0);
  await expect(redisCommand(redis.urls.worker, 'LLEN', 'other:usage-events:wait')).rejects.toThrow('NOPERM');
  const settings = await redisCommand(redis.url, 'CONFIG', 'GET', 'maxmemory-policy', 'append*');
  expect(settings).toEqual(expect.arrayContaining(['noeviction', 'appendonly', 'yes', 'appendfsync', 'always']));
  await redis.stop();
  directory.close();
  expect(await readFile(redis.logFile, 'utf8')).toMatch(/Ready to accept connections/);
});

it('a port that was asked for is refused in one line when something else uses it', async () => {
  const port = await findFreePort();
  const other = createServer().listen(port, LOOPBACK);
  await once(other, 'listening');
  const line = new RegExp(`^Port ${port} on 127\\.0\\.0\\.1, .* is in use by another process\\.$`);
  const refused = { name: 'LocalStackError', message: expect.stringMatching(line) };
  const dataDir = await DataDirectory.open(folder());
  await expect(startRedis({ dataDir, port })).rejects.toMatchObject(refused);
  await expect(startClickHouse({ dataDir, httpPort: port })).rejects.toMatchObject(refused);
  dataDir.close();
  other.close();
});

const numbersOf = async (count: number) => (await planShards(count, folder())).map((shard) => shard?.number);

it('several servers are numbered from 1, each with the addresses of all, and find their data again', async () => {
  const [first, second] = await planShards(2, folder());
  expect(first?.tcpPorts).toEqual(second?.tcpPorts);
  expect(new Set(first?.tcpPorts).size).toBe(2);
  for (let time = 0; time < 2; time += 1) expect(await numbersOf(2)).toEqual([1, 2]);
});

it('another number of servers than before is refused: events would be looked for where they are not', async () => {
  await planShards(2, folder());
  const before = await readdir(folder());
  for (const count of [1, 3]) await expect(planShards(count, folder())).rejects.toThrow('Start with --shards 2,');
  expect(await readdir(folder())).toEqual(before);
});

it('one server is no shard, and where it was, shards are refused', async () => {
  await mkdir(folder('clickhouse'));
  await expect(planShards(2, folder())).rejects.toThrow('has the data of 1 ClickHouse server');
  expect(await numbersOf(1)).toEqual([undefined]);
});
