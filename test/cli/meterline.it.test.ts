/** The command as its users meet it: its output and its exit code, and a few times the process itself. */
import { spawnSync } from 'node:child_process';
import { closeSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AccountDirectory, ApiKeyStore } from '@meterline/service/access';
import { Redis } from 'ioredis';
import { listening } from '../harness/listening.js';
import { openFull } from '../harness/programs.js';
import {
  createTestDatabase,
  databaseVariables,
  testClickHouseUrl,
  testRedisUrl,
  uniquePrefix,
} from '../harness/stack.js';
import { BIN, runCommand, runMeterline } from './run-command.js';

const REDIS = { REDIS_URL: testRedisUrl() };

it('the command is a process with its version on stdout, or its fault on stderr and in its exit code', async () => {
  const lines = [['--version'], ['migrate', '--help'], ['bogus']];
  const [version, help, problem] = await Promise.all(lines.map((line) => runMeterline(line)));
  expect(version).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
  expect(help).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('Exit codes: 0 done, 1 failed') });
  expect(problem).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining("unknown command 'bogus'") });
});

it('output that finds no room is a failure, and told', async () => {
  const full = openFull();
  const { status, stderr } = spawnSync(process.execPath, [BIN, '--version'], { stdio: ['ignore', full, 'pipe'] });
  closeSync(full);
  expect(status).toBe(1);
  expect(String(stderr)).toMatch(/^meterline: cannot write the output: [^\n]+\n$/);
});

it('a server that cannot be reached, refuses, or is another one is named with where its address came from', async () => {
  const web = createServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
  });
  const { host } = new URL(await listening(web));
  const keys = (url: string) => ['keys', 'list', '--redis-url', url];
  const migrate = (url: string) => ['migrate', '--clickhouse-url', url, '--clickhouse-user', 'nobody'];
  const cases: readonly (readonly [string[], Record<string, string>, RegExp])[] = [
    [
      ['keys', 'list'],
      { REDIS_URL: 'redis://:secret@127.0.0.1:1' },
      /^cannot reach Redis at redis:\/\/:\*{3}@127\.0\.0\.1:1 \(from REDIS_URL\): ECONNREFUSED; is it running\?$/,
    ],
    [
      migrate('http://127.0.0.1:1'),
      {},
      /^cannot reach ClickHouse at http:\/\/127\.0\.0\.1:1 \(from --clickhouse-url\): ECONNREFUSED; is it running\?$/,
    ],
    [keys(`redis://${host}`), {}, /^what answers at redis:\S+ \(from --redis-url\) is not Redis$/],
    [keys(`${testRedisUrl()}/99`), {}, /^Redis at \S+ \(from --redis-url\) refuses: ERR DB index is out of range$/],
    [migrate(testClickHouseUrl()), {}, /^ClickHouse at \S+ \(from --clickhouse-url\) refuses \(as user nobody\): .*$/],
  ];
  for (const [args, env, reason] of cases) {
    const { code, stdout, stderr } = await runCommand(args, { env });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.replace(/^meterline: (.*)\n$/, '$1')).toMatch(reason);
  }
  web.close();
});

it('migrate applies nothing to a database that is up to date', async () => {
  const { options, drop } = await createTestDatabase();
  const { code, stdout } = await runCommand(['migrate', '--json'], { env: databaseVariables(options) });
  expect([code, JSON.parse(stdout)]).toEqual([0, { database: options.database, applied: [] }]);
  await drop();
});

describe('meterline keys', () => {
  let redis: Redis;
  beforeAll(() => {
    redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
  });
  afterAll(() => redis.disconnect());

  const keys = (...args: string[]) => runCommand(['keys', ...args], { env: REDIS });

  it('keys create makes a key that the API accepts, list shows it without its text, and revoke ends it', async () => {
    const account = uniquePrefix();
    const store = new ApiKeyStore(redis);
    const created = await keys('create', '--account', account, '--role', 'admin', '--json');
    const { keyId, clientId, key, ...rest } = JSON.parse(created.stdout);
    expect(rest).toEqual({ account, role: 'admin' });
    expect(clientId).toMatch(/^client_[0-9a-f]{18}$/);
    expect(await store.authenticate(key, new Date())).toMatchObject({ keyId, clientId, account, role: 'admin' });
    const listed = { keyId, clientId, account, role: 'admin', createdAt: expect.any(String) };
    const never = { expiresAt: null, lastUsedAt: null, revokedAt: null };
    const { stdout } = await keys('list', '--account', account, '--json');
    expect(JSON.parse(stdout)).toEqual([{ ...listed, ...never }]);
    for (let times = 0; times < 2; times += 1) {
      expect(await keys('revoke', keyId)).toMatchObject({ code: 0 });
      expect(await store.authenticate(key, new Date())).toBeUndefined();
    }
    const unknown = expect.stringContaining('there is no key nope');
    expect(await keys('revoke', 'nope')).toMatchObject({ code: 1, stderr: unknown });
  });

  it('keys create keeps the client it is given, names the account, and gives a key an end', async () => {
    const account = uniquePrefix();
    const args = ['create', '--account', account, '--role', 'member', '--client', 'reports'];
    const end = ['--expires-at', '2099-12-31T00:00:00Z', '--name', 'ACME Corp.'];
    const created = JSON.parse((await keys(...args, ...end, '--json')).stdout);
    expect(created).toMatchObject({ clientId: 'reports', expiresAt: '2099-12-31T00:00:00.000Z' });
    expect((await keys(...args, ...end)).stdout).toContain('expiresAt  2099-12-31T00:00:00.000Z\n');
    expect(await new AccountDirectory(redis).find(account)).toMatchObject({ name: 'ACME Corp.' });
    const { stdout } = await keys('list', '--account', account);
    expect(stdout).toMatch(/^KEY .* EXPIRES +LAST USED +REVOKED\n.* 2099-12-31T00:00:00.000Z/);
    const past = await keys(...args, '--expires-at', '2020-01-01T00:00:00Z');
    expect(past).toMatchObject({ code: 2, stderr: expect.stringContaining('--expires-at must lie in the future') });
  });
});

it.each<[string[], RegExp]>([
  ...['bash', 'zsh', 'fish'].map((shell): [string[], RegExp] => [['completion', shell], /meterline complete --/]),
  [['complete', '--', 'me'], /^metrics\twhat an account used/m],
  [['complete', '--', 'metrics', '--gr'], /^--group-by\t/m],
  [['complete', '--', 'metrics', '--group-by', ''], /^account\t\nworkspace\t/m],
  [['complete', '--', 'keys', ''], /^create\tcreate a key/m],
  [['complete', '--', 'keys', 'create', '--role', ''], /^admin\t\nmember\t\nemitter\t\noperator\t/m],
  [['complete', '--', 'emit', 'packages/cli/pack'], /^packages\/cli\/package\.json\t$/m],
])('a shell that runs %j is told what could stand there', async (args, offered) => {
  expect(await runMeterline(args)).toMatchObject({ code: 0, stdout: expect.stringMatching(offered) });
});
