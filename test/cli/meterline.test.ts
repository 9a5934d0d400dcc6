/** The command as its users meet it: its output and its exit code, and a few times the process itself. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import { Redis } from 'ioredis';
import { COMMAND_GROUPS } from '../../packages/cli/src/command-list.js';
import {
  createTestDatabase,
  databaseVariables,
  type TestDatabase,
  testClickHouseUrl,
  testRedisUrl,
  uniquePrefix,
} from '../stack.js';
import { runCommand } from './run-command.js';
import { runMeterline } from './run-meterline.js';

let redis: Redis;
beforeAll(() => {
  redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
});
afterAll(() => redis.disconnect());

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
    [['audit', '--help']],
    [['erase', '--help']],
    [['completion', '--help']],
  ])('%j explains itself and its exit codes', async (args) => {
    const { code, stdout, stderr } = await runCommand(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Exit codes: 0 done, 1 failed, 2 wrong usage or settings.');
    // A time is never shown as milliseconds.
    expect(stdout).not.toMatch(/default: \d{9,}\)/);
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
    [['keys']],
    [['queue']],
    [['rejected']],
    [['completion']],
    [['completion', 'tcsh']],
    [['metrics', '--watch', '--csv']],
    [['metrics', '--watch', '0']],
    [['metrics', '--compare', '--csv', '--series']],
    [['metrics', '--compare', '--month', '2999-01']],
    [['metrics', '--month', '2026-10', '--since', '1d']],
    [['metrics', '--filter', 'resourceTyp=agent']],
    [['metrics', '--filter', 'workspace=']],
    [['metrics', '--filter', 'workspace!=']],
    [['metrics', '--filter', 'excludeWorkspace!=main']],
    [['metrics', '--filter', 'resourceType!=vm']],
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
    const { code, stdout } = await runCommand(['migrate', '--json'], { env: databaseVariables(database.options) });
    const result = { database: database.options.database, applied: [] };
    expect({ code, result: JSON.parse(stdout) }).toEqual({ code: 0, result });
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
    expect(await store.authenticate(key, new Date())).toMatchObject({ keyId, clientId, account, role: 'admin' });

    const listed = await runCommand(['keys', 'list', '--account', account, '--json'], { env });
    expect(JSON.parse(listed.stdout)).toEqual([
      {
        ...{ keyId, clientId, account, role: 'admin', createdAt: expect.any(String) },
        ...{ expiresAt: null, lastUsedAt: null, revokedAt: null },
      },
    ]);

    expect(await runCommand(['keys', 'revoke', keyId], { env })).toMatchObject({ code: 0 });
    expect(await store.authenticate(key, new Date())).toBeUndefined();
    expect(await runCommand(['keys', 'revoke', keyId], { env })).toMatchObject({ code: 0 });
  });

  it('keeps the client it is given', async () => {
    const args = ['keys', 'create', '--account', account, '--role', 'member', '--client', 'reports', '--json'];
    expect(JSON.parse((await runCommand(args, { env })).stdout)).toMatchObject({ clientId: 'reports' });
  });

  it('names the account, and gives a key an end', async () => {
    const named = uniquePrefix();
    const args = ['keys', 'create', '--account', named, '--role', 'member', '--client', 'reports'];
    const end = ['--expires-at', '2099-12-31T00:00:00Z', '--name', 'ACME Corp.'];
    const created = JSON.parse((await runCommand([...args, ...end, '--json'], { env })).stdout);
    expect(created).toMatchObject({ expiresAt: '2099-12-31T00:00:00.000Z' });
    expect((await runCommand([...args, ...end], { env })).stdout).toContain('expires  2099-12-31T00:00:00.000Z\n');
    expect(await new AccountDirectory(redis, REDIS_PREFIX).find(named)).toMatchObject({ name: 'ACME Corp.' });
    const { stdout } = await runCommand(['keys', 'list', '--account', named], { env });
    expect(stdout).toMatch(/^KEY .* EXPIRES +LAST USED +REVOKED\n.* 2099-12-31T00:00:00.000Z/);
    const past = await runCommand([...args, '--expires-at', '2020-01-01T00:00:00Z'], { env });
    expect(past).toMatchObject({ code: 2, stderr: expect.stringContaining('--expires-at must lie in the future') });
  });

  it('says so when there is no such key', async () => {
    expect(await runCommand(['keys', 'revoke', 'nope'], { env })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no key nope'),
    });
  });
});

describe('meterline completion', () => {
  it('knows every command and its flags, in each shell', async () => {
    const shells = ['bash', 'zsh', 'fish'];
    const scripts = await Promise.all(shells.map(async (shell) => (await runCommand(['completion', shell])).stdout));
    const [bash, zsh, fish] = scripts;
    for (const { name } of COMMAND_GROUPS.flatMap(({ commands }) => commands)) {
      expect(bash).toMatch(new RegExp(`^ {4}'meterline ${name}'\\) words='[^']*--help' ?`, 'm'));
      expect(zsh).toContain(`\n_meterline_${name.replaceAll('-', '_')}() {`);
      expect(fish).toContain(`\ncomplete -c meterline -n '__meterline_at meterline ${name}' -l help`);
    }
    expect(bash).toMatch(/^ {4}'meterline keys create'\) words='--account --role .*--json --help' ;;$/m);
    expect(zsh).toContain(`'*--role[what it may do there]:value:(admin member emitter)'`);
    expect(fish).toContain(`-n '__meterline_at meterline keys create' -l role -x -a 'admin member emitter'`);
  });
});
