/** The command as its users meet it: its output and its exit code, and a few times the process itself. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import { QUEUE_NAME } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { createTestDatabase, type TestDatabase, testClickHouseUrl, testRedisUrl, uniquePrefix } from '../stack.js';
import { runCommand } from './run-command.js';
import { runMeterline } from './run-meterline.js';

const TRACE = ['code', 'conv'].map((name) => `packages/local-stack/trace-slice/azure-llm-2023-${name}.csv`);

jest.setTimeout(60_000);

let directory: string;
let redis: Redis;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-cli-'));
  redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
});

afterAll(async () => {
  redis.disconnect();
  await rm(directory, { recursive: true });
});

/** The data of every job under the prefix, the oldest first. */
async function jobsOf(prefix: string): Promise<{ events: unknown[] }[]> {
  const queue = new Queue(QUEUE_NAME, { connection: redis, prefix });
  const jobs = await queue.getWaiting();
  await queue.obliterate({ force: true });
  await queue.close();
  return jobs.sort((a, b) => Number(a.id) - Number(b.id)).map(({ data }) => data);
}

function queueEnv(): { prefix: string; env: Record<string, string> } {
  const prefix = uniquePrefix();
  return { prefix, env: { REDIS_URL: testRedisUrl(), QUEUE_PREFIX: prefix } };
}

describe('every command', () => {
  it.each([
    [['--help']],
    [['metrics', '--help']],
    [['accounts', '--help']],
    [['resource-types', '--help']],
    [['dimensions', '--help']],
    [['estimate', '--help']],
    [['login', '--help']],
    [['logout', '--help']],
    [['whoami', '--help']],
    [['help', 'metrics']],
    [['migrate', '--help']],
    [['keys', 'create', '--help']],
    [['keys', 'list', '--help']],
    [['keys', 'revoke', '--help']],
    [['emit', '--help']],
    [['replay', '--help']],
    [['reprice', '--help']],
    [['rejected', 'list', '--help']],
    [['rejected', 'show', '--help']],
    [['rejected', 'replay', '--help']],
    [['rejected', 'discard', '--help']],
    [['queue', 'status', '--help']],
    [['erase', '--help']],
  ])('%j explains itself and its exit codes', async (args) => {
    const { code, stdout, stderr } = await runCommand(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Exit codes: 0 done, 1 failed, 2 wrong usage or settings.');
  });

  it('is a process with its version on stdout, or its fault on stderr and in its exit code', async () => {
    const [version, help, fault] = await Promise.all([
      runMeterline(['--version']),
      runMeterline(['migrate', '--help']),
      runMeterline(['bogus']),
    ]);
    expect(version).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
    expect(help).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('Exit codes: 0 done, 1 failed'),
    });
    expect(fault).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining("unknown command 'bogus'") });
  });

  it.each(['emit', 'replay'])('%s, which uses the queue, explains its prefix', async (command) => {
    const { stdout } = await runCommand([command, '--help']);
    expect(stdout).toMatch(/--queue-prefix <prefix> .*QUEUE_PREFIX/);
  });

  it.each([
    [[]],
    [['bogus']],
    [['metrics', '--group-by', 'workspace,workspace']],
    [['metrics', '--since', '1d', '--from', '2026-01-01']],
    [['metrics', '--json', '--csv', '--api-url', 'http://127.0.0.1:1']],
    [['estimate']],
    [['estimate', 'agent_async_requests_count=1.5']],
    [['keys', 'create', '--account', 'acme']],
    [['keys', 'create', '--account', 'acme', '--role', 'owner']],
    [['emit', 'x.jsonl', '--batch', '5001']],
    [['replay']],
    [['replay', 'x.csv', '--shift-hours', '1.5']],
    [['keys', 'list', '--redis-url', 'http://127.0.0.1']],
  ])('%j is wrong usage: exit code 2, and nothing on stdout', async (args) => {
    const { code, stdout, stderr } = await runCommand(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).not.toBe('');
  });

  it('names a server that it cannot reach, and where the address came from', async () => {
    const [keys, migrate] = await Promise.all([
      runCommand(['keys', 'list'], { env: { REDIS_URL: 'redis://:secret@127.0.0.1:1' } }),
      runCommand(['migrate', '--clickhouse-url', 'http://127.0.0.1:1']),
    ]);
    expect(keys).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'meterline: cannot reach Redis at redis://:***@127.0.0.1:1 (from REDIS_URL): ECONNREFUSED; is it running?\n',
    });
    expect(migrate).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'meterline: cannot reach ClickHouse at http://127.0.0.1:1 (from --clickhouse-url): ECONNREFUSED; is it running?\n',
    });
  });

  it('says that a server refuses, or is another one than it should be', async () => {
    const redisUrl = testRedisUrl();
    const clickhouseUrl = testClickHouseUrl();
    const web = createServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
    }).listen(0, '127.0.0.1');
    await once(web, 'listening');
    const { port } = web.address() as AddressInfo;
    const [noRedis, noDatabase, noUser] = await Promise.all([
      runCommand(['keys', 'list', '--redis-url', `redis://127.0.0.1:${port}`]),
      runCommand(['keys', 'list', '--redis-url', `${redisUrl}/99`]),
      runCommand(['migrate', '--clickhouse-url', clickhouseUrl, '--clickhouse-user', 'nobody']),
    ]);
    web.close();
    expect(noRedis.stderr).toMatch(/^meterline: what answers at redis:\S+ \(from --redis-url\) is not Redis\n$/);
    expect(noDatabase.stderr).toMatch(
      /^meterline: Redis at \S+ \(from --redis-url\) refuses: ERR DB index is out of range\n$/,
    );
    expect(noUser.stderr).toMatch(
      /^meterline: ClickHouse at \S+ \(from --clickhouse-url\) refuses \(as user nobody\): /,
    );
  });
});

describe('meterline migrate', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database?.drop());

  it('applies nothing to a database that is up to date', async () => {
    const { url, database: name } = database.options;
    const env = { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: name };
    const { code, stdout } = await runCommand(['migrate', '--json'], { env });
    expect({ code, result: JSON.parse(stdout) }).toEqual({ code: 0, result: { database: name, applied: [] } });
  });
});

describe('meterline keys', () => {
  const account = uniquePrefix();
  const env = { REDIS_URL: testRedisUrl() };

  it('creates a key that the API accepts, lists it without its text, and revokes it', async () => {
    const store = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);

    const created = await runCommand(['keys', 'create', '--account', account, '--role', 'admin', '--json'], { env });
    const { keyId, clientId, key, ...rest } = JSON.parse(created.stdout);
    expect(rest).toEqual({ account, role: 'admin' });
    expect(clientId).toMatch(/^client_[0-9a-f]{18}$/);
    expect(await store.authenticate(key)).toMatchObject({ keyId, clientId, account, role: 'admin' });

    const listed = await runCommand(['keys', 'list', '--account', account, '--json'], { env });
    expect(JSON.parse(listed.stdout)).toEqual([
      { keyId, clientId, account, role: 'admin', createdAt: expect.any(String), revokedAt: null },
    ]);

    expect(await runCommand(['keys', 'revoke', keyId], { env })).toMatchObject({ code: 0 });
    expect(await store.authenticate(key)).toBeUndefined();
    expect(await runCommand(['keys', 'revoke', keyId], { env })).toMatchObject({ code: 0 });
  });

  it('keeps the client it is given', async () => {
    const args = ['keys', 'create', '--account', account, '--role', 'member', '--client', 'reports', '--json'];
    expect(JSON.parse((await runCommand(args, { env })).stdout)).toMatchObject({ clientId: 'reports' });
  });

  it('says so when there is no such key', async () => {
    expect(await runCommand(['keys', 'revoke', 'nope'], { env })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no key nope'),
    });
  });
});

describe('meterline emit', () => {
  const lines = Array.from({ length: 5 }, (_, n) => ({ n, usage: 0.1 + n, text: 'é\u2028' }));
  const file = lines.map((line) => JSON.stringify(line)).join('\n');

  it('puts into the queue what is in the file, in jobs of the batch size', async () => {
    const { prefix, env } = queueEnv();
    const path = join(directory, 'events.jsonl');
    await writeFile(path, file);
    const { code, stdout } = await runCommand(['emit', path, '--batch', '2', '--json'], { env });
    expect({ code, result: JSON.parse(stdout) }).toMatchObject({
      code: 0,
      result: { events: 5, jobs: 3, badLines: 0 },
    });
    expect(await jobsOf(prefix)).toEqual([
      { events: lines.slice(0, 2) },
      { events: lines.slice(2, 4) },
      { events: lines.slice(4) },
    ]);
  });

  it('sends the good lines of standard input and reports the bad ones', async () => {
    const { prefix, env } = queueEnv();
    const run = await runCommand(['emit', '-'], { env, stdin: '{"a":1}\r\nnope\r\n\r\n{"a":2}' });
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/^standard input:2: not JSON: .*\nmeterline: 1 bad line, not sent\n$/);
    expect(await jobsOf(prefix)).toEqual([{ events: [{ a: 1 }, { a: 2 }] }]);
  });

  it('sends nothing with --check, and says why the worker would refuse an event', async () => {
    const { prefix, env } = queueEnv();
    const run = await runCommand(['emit', '-', '--check', '--json'], { env, stdin: file });
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining('standard input:1: missing_field: ') });
    expect(JSON.parse(run.stdout)).toMatchObject({ validEvents: 0, badLines: 5 });
    expect(await jobsOf(prefix)).toEqual([]);
  });

  it('says so when there is no such file', async () => {
    const { env } = queueEnv();
    expect(await runCommand(['emit', join(directory, 'none')], { env })).toEqual({
      code: 1,
      stdout: '',
      stderr: `meterline: cannot read ${join(directory, 'none')}: there is no such file\n`,
    });
  });
});

describe('meterline replay', () => {
  it('puts two events per request into the queue, under the account and at the time it is given', async () => {
    const { prefix, env } = queueEnv();
    const args = ['replay', ...TRACE, '--no-wait', '--account', 'acme', '--shift-hours', '24', '--json'];
    const { code, stdout } = await runCommand(args, { env });
    expect({ code, result: JSON.parse(stdout) }).toMatchObject({
      code: 0,
      result: { files: 2, requests: 1_000, events: 2_000, jobs: 4, takenIn: null },
    });
    const jobs = await jobsOf(prefix);
    expect(jobs.map(({ events }) => events.length)).toEqual([500, 500, 500, 500]);
    expect(jobs[0]?.events[0]).toMatchObject({ accountId: 'acme', timestamp: '2023-11-17T18:17:03.9799600Z' });
    expect(new Set(jobs.flatMap(({ events }) => events.map((event) => JSON.stringify(event)))).size).toBe(2_000);
  });

  it('sends nothing of any file when one has a bad line, and names it', async () => {
    const { prefix, env } = queueEnv();
    const bad = join(directory, 'azure-llm-2023-conv.csv');
    await writeFile(bad, 'TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,many,10\r\n');
    const run = await runCommand(['replay', TRACE[0] ?? '', bad], { env });
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining(`meterline: ${bad}:2: expected a request`) });
    expect(await jobsOf(prefix)).toEqual([]);
  });

  it('gives up, with nothing lost, when no worker stores anything', async () => {
    const { prefix, env } = queueEnv();
    const run = await runCommand(['replay', ...TRACE, '--patience', '1'], { env });
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining('4 jobs are still in the queue') });
    expect(await jobsOf(prefix)).toHaveLength(4);
  });

  it('stops at Ctrl-C and says how far it came', async () => {
    const { prefix, env } = queueEnv();
    const run = await runMeterline(['replay', ...TRACE], { env, interruptAt: 'Waiting' });
    expect(run).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('interrupted. 4 jobs are still in the queue'),
    });
    expect(await jobsOf(prefix)).toHaveLength(4);
  });
});
