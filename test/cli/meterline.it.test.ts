/** The command as a process and in a shell, and the commands that reach Redis and ClickHouse. */
import { spawnSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { closeSync } from 'node:fs';
import { createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { MS_PER_HOUR, QUEUE_NAME } from '@meterline/catalog';
import { AccountDirectory, ApiKeyStore } from '@meterline/service/access';
import { FlowProducer, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { SANDBOX_EVENT } from '../harness/events.js';
import { listening } from '../harness/listening.js';
import { openFull } from '../harness/programs.js';
import {
  createTestDatabase,
  databaseVariables,
  testClickHouseUrl,
  testRedisUrl,
  uniquePrefix,
} from '../harness/stack.js';
import { UNTRUSTED } from '../harness/untrusted-certificate.js';
import { BIN, runCommand, runMeterline } from './run-command.js';

const REDIS = { REDIS_URL: testRedisUrl() };
const redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
afterAll(() => redis.disconnect());

it('the command is a process that prints to stdout, or its error to stderr, and ends with an exit code', async () => {
  const [version, problem] = await Promise.all([runMeterline(['--version']), runMeterline(['bogus'])]);
  expect(version).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
  expect(problem).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining("unknown command 'bogus'") });
});

it.each([
  ['the command', BIN, ['--version']],
  ['a service', new URL('../../services/alerts/dist/main.js', import.meta.url).pathname, []],
])(
  '%s gives each address of a host more than the second after which a lost packet is sent again',
  (_name, program, args) => {
    const report = `import { getDefaultAutoSelectFamilyAttemptTimeout as get } from 'node:net';
process.on('exit', () => process.stderr.write('ms: ' + get()));`;
    const options = ['--import', `data:text/javascript,${encodeURIComponent(report)}`, program, ...args];
    const { stderr } = spawnSync(process.execPath, options, { env: { ADMIN_PORT: 'none' } });
    expect(String(stderr)).toMatch(/ms: 2500$/);
  },
);

it('the command fails and reports it when its output cannot be written', async () => {
  const full = openFull();
  const { status, stderr } = spawnSync(process.execPath, [BIN, '--version'], { stdio: ['ignore', full, 'pipe'] });
  closeSync(full);
  expect(status).toBe(1);
  expect(String(stderr)).toMatch(/^meterline: cannot write the output: [^\n]+\n$/);
});

it('a server that is away, that refuses or that is another kind of server is named, with the source of its address', async () => {
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
      /^cannot reach Redis at redis:\/\/:\*{3}@127\.0\.0\.1:1 \(from REDIS_URL\): ECONNREFUSED; is it running\?\nTo manage keys through the API, run "meterline login"\.$/,
    ],
    [
      migrate('http://127.0.0.1:1'),
      {},
      /^cannot reach ClickHouse at http:\/\/127\.0\.0\.1:1 \(from --clickhouse-url\): ECONNREFUSED; is it running\?$/,
    ],
    [keys(`redis://${host}`), {}, /^the server at redis:\S+ \(from --redis-url\) is not Redis$/],
    [
      keys(`${testRedisUrl()}/99`),
      {},
      /^Redis at \S+ \(from --redis-url\) rejected a command: ERR DB index is out of range$/,
    ],
    [
      migrate(testClickHouseUrl()),
      {},
      /^ClickHouse at \S+ \(from --clickhouse-url\) rejected a statement \(as user nobody\): .*$/,
    ],
  ];
  for (const [args, env, reason] of cases) {
    const { code, stdout, stderr } = await runCommand(args, { env });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.replace(/^meterline: (.*)\n$/s, '$1')).toMatch(reason);
  }
  web.close();
});

const KEY = `mlk_${'0'.repeat(24)}_${'0'.repeat(64)}`;
const secure = createTlsServer(UNTRUSTED).on('tlsClientError', () => undefined);
let secureHost: string;
beforeAll(async () => {
  secureHost = new URL(await listening(secure)).host;
});
afterAll(() => void secure.close());

/** A command to each server, which is at this host and port. */
const TO_SERVERS = {
  Redis: (host: string) => runCommand(['queue', 'status'], { env: { REDIS_URL: `rediss://${host}` } }),
  ClickHouse: (host: string) => runCommand(['migrate'], { env: { CLICKHOUSE_URL: `https://${host}` } }),
  'the API': (host: string) =>
    runCommand(['accounts'], { env: { METERLINE_API_URL: `https://${host}`, METERLINE_API_KEY: KEY } }),
  'the collector': (host: string) =>
    runCommand(['emit', '-'], {
      env: { COLLECTOR_URL: `https://${host}`, METERLINE_EMITTER_KEY: KEY },
      stdin: JSON.stringify(SANDBOX_EVENT),
    }),
};

it.each(Object.entries(TO_SERVERS))(
  'a command says of %s what is wrong with a name that does not resolve, and with a certificate that is not trusted',
  async (server, command) => {
    // RFC 6761: nobody has this name.
    const [nameless, untrusted] = await Promise.all([command('meterline.invalid:2'), command(secureHost)]);
    const beginning = `meterline: (?:account acme, line 1: )?cannot reach ${server} at \\S+ \\(from \\w+\\)`;
    expect(nameless.stderr).toMatch(
      new RegExp(`${beginning}: (ENOTFOUND|EAI_AGAIN); its name does not resolve: check the name and DNS\n$`),
    );
    expect(untrusted.stderr).toMatch(
      new RegExp(`${beginning}: DEPTH_ZERO_SELF_SIGNED_CERT; its certificate is not trusted: .*NODE_EXTRA_CA_CERTS\n$`),
    );
  },
);

it('migrate applies nothing to a database that is up to date', async () => {
  const { options, drop } = await createTestDatabase();
  const { code, stdout } = await runCommand(['migrate', '--json'], { env: databaseVariables(options) });
  expect([code, JSON.parse(stdout)]).toEqual([0, { database: options.database, applied: [] }]);
  await drop();
});

it.each<[string[], RegExp]>([
  ...['bash', 'zsh', 'fish'].map((shell): [string[], RegExp] => [['completion', shell], /meterline complete --/]),
  [['complete', '--', 'me'], /^metrics\tShow usage and cost/m],
  [['complete', '--', 'metrics', '--gr'], /^--group-by\t/m],
  [['complete', '--', 'metrics', '--group-by', ''], /^account\t\nworkspace\t/m],
  [['complete', '--', 'keys', ''], /^create\tCreate a key/m],
  [['complete', '--', 'keys', 'create', '--role', ''], /^admin\t\nmember\t\nemitter\t\noperator\t\nprovisioner\t/m],
  [['complete', '--', 'emit', 'packages/cli/pack'], /^packages\/cli\/package\.json\t$/m],
])('a shell that runs %j gets completions', async (args, offered) => {
  const printed: string[] = [];
  // The library prints by itself.
  const log = jest.spyOn(console, 'log').mockImplementation((...line) => void printed.push(line.join(' ')));
  const run = await runCommand(args).finally(() => log.mockRestore());
  expect(run).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(printed.join('\n')).toMatch(offered);
});

describe('meterline keys', () => {
  const keys = (...args: string[]) => runCommand(['keys', ...args], { env: REDIS });

  it('keys create makes a key that the API accepts, list shows it without its text, and revoke ends it', async () => {
    const account = uniquePrefix();
    const store = new ApiKeyStore(redis);
    const created = await keys('create', '--account', account, '--role', 'admin', '--json');
    const { keyId, clientId, key, ...rest } = JSON.parse(created.stdout);
    expect(rest).toEqual({ account, role: 'admin' });
    expect(clientId).toMatch(/^client_[0-9a-f]{18}$/);
    expect(await store.authenticate(key, new Date())).toMatchObject({ keyId, clientId, account, role: 'admin' });
    const none = await keys('list', '--account', uniquePrefix(), '--csv');
    expect(none.stdout).toBe('keyId,clientId,account,role,createdAt,expiresAt,lastUsedAt,revokedAt\r\n');
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

  it('keys create makes keys for all accounts, which list shows without an account', async () => {
    const store = new ApiKeyStore(redis);
    for (const args of [
      ['--role', 'operator'],
      ['--role', 'provisioner'],
      ['--role', 'emitter', '--all-accounts'],
    ]) {
      const created = await keys('create', ...args, '--json');
      const { keyId, key, role, ...rest } = JSON.parse(created.stdout);
      expect(created.stderr).toMatch(/^Created in Redis at redis:\S+ \(from REDIS_URL\)\.\n$/);
      expect([role, Object.keys(rest)]).toEqual([args[1], ['clientId']]);
      const record = await store.authenticate(key, new Date());
      expect(record).toMatchObject({ keyId, role });
      expect(record).not.toHaveProperty('account');
      const { stdout } = await keys('list', '--json');
      expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ keyId, account: null }));
      await keys('revoke', keyId);
    }
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
    expect(past).toMatchObject({ code: 2, stderr: expect.stringContaining('--expires-at must be in the future') });
  });
});

describe('meterline queue', () => {
  const EMPTY = { waiting: 0, active: 0, delayed: 0, failed: 0, flowParents: 0, completedKept: 0, paused: false };
  const ages = z.looseObject({ oldestWaitingSeconds: z.int().nullable(), oldestActiveSeconds: z.int().nullable() });
  let prefix: string;
  let queue: Queue;

  beforeEach(() => {
    prefix = uniquePrefix();
    queue = new Queue(QUEUE_NAME, { connection: redis, prefix });
  });
  afterEach(async () => {
    await queue.obliterate({ force: true });
    await queue.close();
  });

  const hoursAgo = (hours: number) => Date.now() - (hours + 0.5) * MS_PER_HOUR;

  async function text(...args: string[]): Promise<string> {
    const env = { ...REDIS, QUEUE_PREFIX: prefix };
    return (await runCommand(['queue', 'status', ...args], { env })).stdout;
  }

  /** With whole hours in place of seconds. */
  async function status() {
    const { oldestWaitingSeconds, oldestActiveSeconds, ...counts } = ages.parse(JSON.parse(await text('--json')));
    const hours = (seconds: number | null) => seconds && Math.floor((seconds * 1_000) / MS_PER_HOUR);
    return { ...counts, oldestWaiting: hours(oldestWaitingSeconds), oldestActive: hours(oldestActiveSeconds) };
  }

  it('queue status counts waiting jobs, paused or not, with the age of the oldest, also as a text', async () => {
    expect(await status()).toEqual({ ...EMPTY, oldestWaiting: null, oldestActive: null, workers: 0 });
    await queue.add('usage', {}, { priority: 5, timestamp: hoursAgo(3) });
    expect(await status()).toMatchObject({ waiting: 1, oldestWaiting: 3 });
    for (const hours of [9, 5, 2]) await queue.add('usage', {}, { timestamp: hoursAgo(hours) });
    await queue.add('usage', {}, { delay: 1_000_000 });
    expect(await status()).toMatchObject({ waiting: 4, delayed: 1, paused: false, oldestWaiting: 9 });
    await queue.pause();
    await queue.add('usage', {}, { timestamp: hoursAgo(1) });
    expect(await status()).toMatchObject({ waiting: 5, paused: true, oldestWaiting: 9 });
    expect(await text()).toMatch(
      /^waiting {9}5\noldest waiting {2}34,2\d\d s\nactive {10}0\noldest active {3}-\ndelayed {9}1\nfailed {10}0\nflow parents {4}0\ncompleted kept {2}0\npaused {10}yes\nworkers {9}0\n$/,
    );
  });

  it('queue status counts the parents of flows that wait for their children apart', async () => {
    const flows = new FlowProducer({ connection: redis, prefix });
    const child = { name: 'usage', queueName: `${QUEUE_NAME}-children`, data: {} };
    await flows.add({ name: 'usage', queueName: QUEUE_NAME, data: {}, children: [child] });
    await flows.close();
    expect(await status()).toMatchObject({ waiting: 0, flowParents: 1 });
    await new Queue(`${QUEUE_NAME}-children`, { connection: redis, prefix }).obliterate({ force: true });
  });

  it.each([
    ['cannot be read', 'yesterday', null],
    ['lies in the future', String(Date.now() + 24 * MS_PER_HOUR), 0],
  ])('queue status reads a job whose data is not JSON and whose time %s', async (_, timestamp, age) => {
    const { id = '' } = await queue.add('usage', {});
    await redis.hset(queue.toKey(id), { data: '{oops', timestamp });
    expect(await status()).toMatchObject({ waiting: 1, oldestWaiting: age });
  });

  it('queue status counts active, completed and failed jobs, and workers', async () => {
    for (const name of ['done', 'failed', 'in work']) await queue.add(name, {});
    const events = new EventEmitter();
    const [reached, released] = [once(events, 'reached'), once(events, 'released')];
    const work = async ({ name }: { name: string }) => {
      if (name === 'failed') throw new Error(name);
      if (name === 'done') return;
      events.emit('reached');
      await released;
    };
    const worker = new Worker(QUEUE_NAME, work, { connection: { url: testRedisUrl() }, prefix });
    await reached;
    expect(await status()).toMatchObject({ waiting: 0, active: 1, failed: 1, completedKept: 1, workers: 1 });
    const [id = ''] = await queue.getRanges(['active'], 0, 0);
    await redis.hset(queue.toKey(id), { processedOn: String(hoursAgo(4)) });
    expect(await status()).toMatchObject({ oldestActive: 4 });
    events.emit('released');
    await worker.close();
    expect(await status()).toMatchObject({ active: 0, workers: 0 });
  });
});
