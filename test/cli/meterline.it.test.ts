/** The command as its users meet it: its output and its exit code, and a few times the process itself. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/service/access';
import { Redis } from 'ioredis';
import { COMMAND_GROUPS } from '../../packages/cli/src/command-list.js';
import {
  createTestDatabase,
  databaseVariables,
  type TestDatabase,
  testClickHouseUrl,
  testRedisUrl,
  uniquePrefix,
} from '../harness/stack.js';
import { runCommand } from './run-command.js';
import { runMeterline } from './run-meterline.js';

let redis: Redis;
beforeAll(() => {
  redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
});
afterAll(() => redis.disconnect());

describe('every command', () => {
  const commands = Object.values(COMMAND_GROUPS).flatMap((group) => Object.keys(group));
  it.each([
    ...[
      '--help',
      'completion --help',
      ...commands.map((name) => `${name} --help`),
      ...commands.map((name) => `help ${name}`),
    ],
    ...['keys create --help', 'keys list --help', 'keys revoke --help', 'queue status --help', 'export focus --help'],
    ...['list', 'create', 'show', 'update', 'delete', 'test', 'deliveries'].map((name) => `alerts ${name} --help`),
    ...['rejected list --help', 'rejected show --help', 'rejected replay --help', 'rejected discard --help'],
    ...['retention status --help', 'retention close --help', 'retention reopen --help', 'retention drop --help'],
  ])('%s explains itself and its exit codes', async (line) => {
    const { code, stdout, stderr } = await runCommand(line.split(' '));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Exit codes: 0 done, 1 failed, 2 wrong usage or settings.');
    // A time is never shown as milliseconds.
    expect(stdout).not.toMatch(/default: \d{9,}\)/);
  });

  it('below a group has its help behind help, too', async () => {
    expect((await runCommand(['help', 'keys', 'create'])).stdout).toMatch(/^Usage: meterline keys create /);
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

  it.each([
    ['', 'Usage: meterline [options] [command]'],
    ['bogus', "unknown command 'bogus'"],
    ['help bogus', "unknown command 'bogus'"],
    ['bogus --help', "unknown command 'bogus'"],
    ['help metricz', "unknown command 'metricz'\n(Did you mean metrics?)"],
    ...['alerts', 'keys', 'queue', 'rejected', 'retention', 'export'].map((group) => [
      group,
      `Usage: meterline ${group} [options]`,
    ]),
    ['completion', "missing required argument 'shell'"],
    ['completion tcsh', 'Allowed choices are'],
    ['metrics --watch --csv', 'leave out --csv'],
    ['metrics --watch 0', 'must be a whole number from 1 to'],
    ['metrics --compare --csv --series', 'leave out --series'],
    ['metrics --compare --month 2100-12', 'the window lies in the future'],
    ['metrics --month 2026-10 --since 1d', "cannot be used with option '--since"],
    ['metrics --since 1d --from 2026-01-01', "cannot be used with option '--from"],
    ['metrics --filter resourceTyp=agent', 'with a name of account, workspace, resourceType'],
    ['metrics --filter workspace=', '1 to 256 characters'],
    ['metrics --filter workspace!=', '1 to 256 characters'],
    ['metrics --filter excludeWorkspace!=main', 'must be name=value or name!=value'],
    ['metrics --filter resourceType!=vm', 'Allowed choices are sandbox, agent'],
    ['metrics --group-by workspace,workspace', 'up to 3 different ones'],
    ['metrics --group-by account', 'a filter with --all-accounts alone'],
    ['metrics --filter account=acme', 'a filter with --all-accounts alone'],
    ['metrics --all-accounts --account acme', "cannot be used with option '--account"],
    ['metrics --json --csv --api-url http://127.0.0.1:1', 'give --json or --csv, not both'],
    ['estimate', 'name some usage, as <dimension>=<usage>, or a --file'],
    ['estimate agent_async_requests_count=1.5', 'must be a whole number'],
    ['alerts create --period month', "required option '--name <name>' not specified"],
    ['alerts create --period week', 'Allowed choices are day, month'],
    ['alerts create --threshold 0', 'must be a whole number from 1 to 1000'],
    ['alerts show', "missing required argument 'alertId'"],
    ['keys create --account acme', "required option '--role <role>' not specified"],
    ['keys create --account acme --role owner', 'Allowed choices are admin, member, emitter, operator'],
    ['keys list --redis-url http://127.0.0.1', 'must be a URL such as redis://'],
    ['emit x.jsonl --batch 5001', 'must be a whole number from 1 to 5000'],
    ['export focus --month 2100-12', '2100-12 has not begun'],
    ['retention close', 'give --before or --months'],
    ['retention close --before 2100-12', 'this month and the one before it stay open'],
    ['audit --from 2026-01-02 --to 2026-01-01', '--to must be after --from'],
    ['erase --account a --confirm b', '--confirm must repeat the name of --account'],
    ['reprice --account a --from 2026-02-30 --to 2026-03-01', 'must be a UTC day or time'],
    ['reprice --account a --from 2026-01-02 --to 2026-01-01', '--to must be after --from'],
    ['reprice --account a --from 2026-01-01 --to 2026-01-02 --step 0', 'must be a whole number from 1'],
    ['rejected show 42', '42 is no id of a rejection'],
    ['rejected replay', 'name rejections by their ids, or choose them with --all'],
    ['rejected replay --all', 'at least one of the filters'],
    ['rejected replay a-1 --all --account a', 'name rejections by their ids'],
    ['rejected replay a-1 --edit usage', 'not of the form field=value'],
    ['rejected replay a-1 a-2 --edit eventId=x', '--edit eventId is for one rejection at a time'],
    ['rejected replay --all --account a --edit eventId=x', 'events with the same id count as one'],
    ['rejected discard --account a', 'name rejections by their ids'],
    ['rejected list --reason bogus', 'Allowed choices are'],
    ['rejected list --since 5', 'hours, days or weeks: 90m, 24h, 30d, 12w'],
    ['rejected list --since 5m --from 2026-01-01', "cannot be used with option '--from"],
  ])('"%s" is wrong usage: exit code 2, nothing on stdout, and the reason', async (line, reason) => {
    const { code, stdout, stderr } = await runCommand(line.split(' ').filter((word) => word !== ''));
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(reason);
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
  it.each(['bash', 'zsh', 'fish'])(
    'has a script for %s, which asks the command what could stand there',
    async (shell) => {
      const { code, stdout } = await runMeterline(['completion', shell]);
      expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('meterline complete --') });
    },
  );

  it.each([
    [['me'], /^metrics\twhat an account used/m],
    [['metrics', '--gr'], /^--group-by\t/m],
    [['metrics', '--group-by', ''], /^account\t\nworkspace\t/m],
    [['keys', ''], /^create\tcreate a key/m],
    [['keys', 'create', '--role', ''], /^admin\t\nmember\t\nemitter\t\noperator\t/m],
    [['emit', 'packages/cli/pack'], /^packages\/cli\/package\.json\t$/m],
  ])('after %j offers what could stand there', async (args, offered) => {
    expect((await runMeterline(['complete', '--', ...args])).stdout).toMatch(offered);
  });
});
