/** Tests how local servers start and end, and that other users and web pages on this machine cannot use them. */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { testFolder } from '../../../test/harness/test-folder.js';
import { type RunningClickHouse, startClickHouse } from './clickhouse.js';
import { DataDirectory } from './data-directory.js';
import { isPortFree } from './ports.js';
import { startRedis } from './redis.js';
import { planShards, type Servers, startServers } from './servers.js';

/** The usual UID of `nobody`. Only root can switch to another user. Otherwise the tests check only the file modes. */
const NOBODY = 65_534;
const OTHER_USER = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : undefined;

const folder = testFolder('each test');

const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

async function sql({ url, user, password }: RunningClickHouse, statement: string): Promise<string> {
  const headers = { connection: 'close', ...basic(user, password) };
  const response = await fetch(url, { method: 'POST', body: statement, headers });
  const result = await response.text();
  if (!response.ok) throw new Error(result);
  return result.trim();
}

async function redisCommand(url: string, command: string, ...args: string[]): Promise<unknown> {
  const redis = new Redis(url);
  try {
    return await redis.call(command, ...args);
  } finally {
    redis.disconnect();
  }
}

/** A zombie process does not count as running. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return /^[^Z\s]/.test(stdout);
}

/** Always true on systems without /proc. */
async function holdsLock(pid: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const files = (await readdir(`/proc/${pid}/fd`)).map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => ''));
  return (await Promise.all(files)).some((file) => file.endsWith('/stack.lock'));
}

const arePortsFree = async (ports: readonly number[]) =>
  (await Promise.all(ports.map((port) => isPortFree(port)))).every(Boolean);

it('local servers work, and after a stop leave no processes, ports or temporary directory behind', async () => {
  const { clickhouse, redis, directory, stop } = await startServers();
  const processes = [clickhouse.pid, redis.pid];
  expect(await sql(clickhouse, 'SELECT 1 + 1')).toBe('2');
  expect(await redisCommand(redis.url, 'ECHO', 'hello')).toBe('hello');
  expect(processes.map(isRunning)).toEqual([true, true]);
  expect(await Promise.all(processes.map(holdsLock))).toEqual([true, true]);
  await stop();
  await stop();
  expect(await clickhouse.exited).toMatchObject({ signal: null });
  expect(processes.map(isRunning)).toEqual([false, false]);
  expect(await arePortsFree([clickhouse.httpPort, redis.port])).toBe(true);
  expect(existsSync(directory.path)).toBe(false);
});

it('local servers end when their parent process is killed, and the next start has their data', async () => {
  const index = new URL('../dist/index.js', import.meta.url).href;
  const script = `
    import { startServers } from ${JSON.stringify(index)};
    const { clickhouse, redis } = await startServers({ dataDir: ${JSON.stringify(folder())} });
    console.log(JSON.stringify({ clickhouse, redis }));`;
  const args = ['--input-type=module', '-e', script];
  const owner = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(createInterface(owner.stdout), 'line');
  const { clickhouse, redis } = JSON.parse(String(line));
  const processes = [clickhouse.pid, redis.pid];
  expect(processes.map(isRunning)).toEqual([true, true]);
  await sql(clickhouse, 'CREATE TABLE kept ENGINE = MergeTree ORDER BY x AS SELECT 3 AS x');
  await redisCommand(redis.url, 'SET', 'key', 'value');
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  const successor = await startServers({ dataDir: folder() });
  expect(processes.map(isRunning)).toEqual([false, false]);
  expect(await arePortsFree([clickhouse.httpPort, redis.port])).toBe(true);
  expect(await sql(successor.clickhouse, 'SELECT x FROM kept')).toBe('3');
  expect(await redisCommand(successor.redis.url, 'GET', 'key')).toBe('value');
  await successor.stop();
});

it('the error for a ClickHouse that fails to start has the end of its log', async () => {
  await mkdir(folder('clickhouse-users.d'));
  await writeFile(folder('clickhouse-users.d', 'damaged.xml'), '<clickhouse');
  const directory = await DataDirectory.open(folder());
  await expect(startClickHouse({ dataDir: directory })).rejects.toMatchObject({
    message: expect.stringContaining(`The end of ${folder('clickhouse.log')}:`),
  });
  directory.close();
});

it('Redis has only the users of redis/users.conf, evicts nothing, and writes every command to disk', async () => {
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

const numbersOf = async (count: number) => (await planShards(count, folder())).map((shard) => shard?.number);

it('shards are numbered from 1, know the ports of all shards, and keep their numbers', async () => {
  const [first, second] = await planShards(2, folder());
  expect(first?.tcpPorts).toEqual(second?.tcpPorts);
  expect(new Set(first?.tcpPorts).size).toBe(2);
  for (let time = 0; time < 2; time += 1) expect(await numbersOf(2)).toEqual([1, 2]);
});

it('a start with another number of shards is rejected', async () => {
  await planShards(2, folder());
  const before = await readdir(folder());
  for (const count of [1, 3]) await expect(planShards(count, folder())).rejects.toThrow('Start with --shards 2,');
  expect(await readdir(folder())).toEqual(before);
});

it('a single server is not a shard, and its data cannot be used with shards', async () => {
  await mkdir(folder('clickhouse'));
  await expect(planShards(2, folder())).rejects.toThrow('has data of 1 ClickHouse server');
  expect(await numbersOf(1)).toEqual([undefined]);
});

describe('confinement', () => {
  let stack: Servers;
  let secretFile: string;
  let readSecret: string;
  beforeAll(async () => {
    stack = await startServers();
    secretFile = stack.directory.file('keys.json');
    readSecret = `SELECT * FROM file('${secretFile}', LineAsString)`;
    await writeFile(secretFile, 'the admin key', { mode: 0o600 });
  });
  afterAll(() => stack.stop());

  /** Sends a request without fetch, which does not allow setting Host and Origin. */
  async function send(statement: string, headers: Record<string, string> = {}, path = '/') {
    const result = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(new URL(path, stack.clickhouse.url), { method: 'POST', headers, agent: false }, resolve);
      sent.once('error', reject).end(statement);
    });
    return { status: result.statusCode, body: await text(result) };
  }

  const login = () => basic(stack.clickhouse.user, stack.clickhouse.password);

  it.each([
    ['no credentials', {}],
    ['the internal user', basic('default', '')],
    ['the internal user in ClickHouse headers', { 'x-clickhouse-user': 'default' }],
    ['a wrong password', basic('meterline', 'wrong')],
    ['an empty password', basic('meterline', '')],
  ])('ClickHouse rejects a statement with %s', async (_, headers) => {
    const pages = ['/play', '/dashboard', '/replicas_status'];
    for (const path of ['/', '/?user=default', '/?us%65r=default&password=', '/?user=meterline', ...pages]) {
      const { status, body } = await send(readSecret, headers, path);
      expect({ path, status, leaked: body.includes('admin key') }).toEqual({ path, status: 401, leaked: false });
    }
  });

  it('ClickHouse rejects credentials in its own headers, because basic authentication is the only way to log in', async () => {
    const { user, password } = stack.clickhouse;
    const { status } = await send('SELECT 1', { 'x-clickhouse-user': user, 'x-clickhouse-key': password });
    expect(status).toBe(401);
  });

  it('users with a password cannot use the internal user', async () => {
    const { body } = await send(readSecret, basic('query', stack.clickhouse.passwords.query), '/?user=default');
    expect(body).toMatch(/QUOTA_EXCEEDED/);
  });

  it('ClickHouse rejects requests of web pages, and foreign Host headers', async () => {
    const written = stack.directory.file('written');
    const statement = `INSERT INTO FUNCTION file('${written}', LineAsString) VALUES ('by a page')`;
    const page = { 'content-type': 'text/plain' };
    for (const origin of ['https://example.com', stack.clickhouse.url, 'null']) {
      for (const known of [{}, login()]) {
        expect((await send(statement, { ...page, ...known, origin })).status).toBe(403);
      }
    }
    expect((await send(statement, page)).status).toBe(401);
    expect(await readdir(stack.directory.path)).not.toContain('written');

    const { port } = new URL(stack.clickhouse.url);
    const statusOf = async (host: string) => (await send('SELECT 1', { ...login(), host })).status;
    for (const host of ['example.com', `example.com:${port}`, `localhost.example.com:${port}`]) {
      expect(await statusOf(host)).toBe(403);
    }
    expect(await statusOf(`localhost:${port}`)).toBe(200);
  });

  it('another user of the machine cannot read files through ClickHouse, or files with passwords', async () => {
    const program = `
      const response = await fetch(process.argv[1], { method: 'POST', body: process.argv[2] });
      console.log(response.status, await response.text());`;
    const as = { ...OTHER_USER, cwd: '/' };
    const args = ['--input-type=module', '-e', program, stack.clickhouse.url, readSecret];
    const { stdout } = await promisify(execFile)(process.execPath, args, as);
    expect(stdout).toMatch(/^401 /);
    expect(stdout).not.toContain('admin key');

    const { directory } = stack;
    const files = (await readdir(directory.path)).filter((name) => /secret|clickhouse-.*xml|redis\.conf/.test(name));
    expect(files).toHaveLength(4);
    for (const name of files) expect((await stat(directory.file(name))).mode & 0o077).toBe(0);
    if (!OTHER_USER) return;
    await expect(promisify(execFile)('cat', [directory.file('secret.json')], as)).rejects.toThrow('Permission denied');
  });

  it('passwords are not in process arguments or logs', async () => {
    const { clickhouse, redis, directory } = stack;
    const urls = Object.values(redis.urls).map((url) => new URL(url).password);
    const passwords = [directory.secret, ...Object.values(clickhouse.passwords), ...urls];
    const args = [clickhouse.pid, redis.pid].map((pid) => `/proc/${pid}/cmdline`);
    for (const file of [clickhouse.logFile, redis.logFile, ...(process.platform === 'linux' ? args : [])]) {
      const content = await readFile(file, 'utf8');
      for (const password of passwords) expect(content).not.toContain(password);
    }
  });
});
