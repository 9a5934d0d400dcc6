import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { listening } from '../../../../test/harness/listening.js';
import {
  arePortsFree,
  MY_AGENT,
  queryGroups,
  queryIn,
  readAddresses,
  type Started,
  spawnStart,
  startEnvironment,
  startStack,
} from '../../../../test/harness/npm-start.js';
import { RedisProcess } from '../../../../test/harness/redis-servers.js';
import { DataDirectory } from '../data-directory.js';
import { findFreePort, isPortFree } from '../ports.js';
import { startService } from './services.js';

let dataDir: string;
let stack: Started;

beforeAll(async () => {
  // A shell must quote this name.
  dataDir = await mkdtemp(join(tmpdir(), "meterline-it's-"));
  stack = await startStack(dataDir);
});
afterAll(async () => {
  stack.child.kill('SIGKILL');
  await rm(dataDir, { recursive: true, force: true, maxRetries: 20 });
});

/** The exit code of a process that cannot start, and what it has said about that. */
async function failed(child: ChildProcess): Promise<[code: unknown, errors: string]> {
  const [[code], errors] = await Promise.all([once(child, 'close'), child.stderr ? text(child.stderr) : '']);
  return [code, errors];
}

/** Whether the port is in use on 127.0.0.1 alone, as far as this machine has other addresses. */
async function onlyOnLoopback(port: number): Promise<boolean> {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const others = all.filter(({ address }) => address !== '127.0.0.1' && !address.startsWith('fe80:'));
  const free = await Promise.all(others.map(({ address }) => isPortFree(port, address)));
  return !(await isPortFree(port)) && free.every(Boolean);
}

async function pageOf(url: string): Promise<string> {
  return (await fetch(url, { headers: { connection: 'close' } })).text();
}

/** The accounts that a key may read, from the running API. */
async function accountsOf(apiUrl: string, key: string): Promise<unknown> {
  const response = await fetch(`${apiUrl}/v0/accounts`, {
    headers: { authorization: `Bearer ${key}`, connection: 'close' },
  });
  return response.json();
}

it('npm start says where everything is, on the loopback address alone', async () => {
  const { apiUrl, collectorUrl, adminKey, memberKey, account } = await readAddresses(dataDir);
  expect(stack.summary).toContain(
    `\n  Web page   ${apiUrl}/ (sign in with the admin key)\n  API        ${apiUrl}\n  Collector  ${collectorUrl}\n`,
  );
  expect(stack.summary).toContain(`\n  Admin key  ${adminKey}\n`);
  expect(stack.summary).toContain(`\n  export METERLINE_DATA_DIR='${dataDir.replace("'", "'\\''")}'\n`);
  const metrics = /^ +(?:Metrics +)?(http\S+\/metrics) \(\w+\)$/gm;
  const pages = await Promise.all([...stack.summary.matchAll(metrics)].map(([, url = '']) => pageOf(url)));
  expect(pages.map((page) => /meterline_service_info\{service="(\w+)"\}/.exec(page)?.[1])).toEqual([
    'ingest',
    'query',
    'collector',
    'alerts',
  ]);
  expect((await stat(join(dataDir, 'local.json'))).mode & 0o777).toBe(0o600);
  expect(await accountsOf(apiUrl, adminKey)).toMatchObject([{ id: account, role: 'admin' }]);
  expect(await accountsOf(apiUrl, memberKey)).toMatchObject([{ role: 'member' }]);
  for (const listening of [stack.port, stack.collectorPort]) expect(await onlyOnLoopback(listening)).toBe(true);
});

it('npm start stores and prices what the printed commands send and ask', async () => {
  const { emitterKey, adminKey } = await readAddresses(dataDir);
  const [, key, url = '', body = ''] =
    /Bearer (\w+)'[^']*'[^']*'[^']*'(http\S+events)'[^']*'(.*)'/.exec(stack.summary) ?? [];
  expect(key).toBe(emitterKey);
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' };
  const sent = await fetch(url, { method: 'POST', headers, body });
  expect([sent.status, await sent.json()]).toMatchObject([202, { accepted: 1 }]);
  expect(queryIn(stack.summary).key).toBe(adminKey);
  while ((await queryGroups(stack.summary)).length === 0) await sleep(100);
  expect(await queryGroups(stack.summary)).toMatchObject([MY_AGENT]);
});

it('npm start lets each process into ClickHouse and Redis as a user of its own, which lacks no right', async () => {
  const { clickhouseUrl, clickhouseUser, clickhousePassword, redisUrl } = await readAddresses(dataDir);
  const result = await fetch(clickhouseUrl, {
    method: 'POST',
    // Every user that has sent a statement.
    body: "SELECT user FROM system.user_processes WHERE user != 'default' ORDER BY user",
    headers: { authorization: `Basic ${btoa(`${clickhouseUser}:${clickhousePassword}`)}`, connection: 'close' },
  });
  expect((await result.text()).trim().split('\n')).toEqual(['ingest', 'meterline', 'migrate', 'query']);

  const redis = new Redis(redisUrl);
  const connected = String(await redis.client('LIST')).matchAll(/ user=(\w+) /g);
  const users = ['admin', 'alerts', 'collector', 'query', 'worker'];
  expect([...new Set([...connected].map(([, user]) => user))].sort()).toEqual(users);
  expect(await redis.acl('LOG')).toEqual([]);
  redis.disconnect();
});

it('npm start refuses a second copy in one line', async () => {
  expect(await failed(spawnStart(startEnvironment(dataDir, '')))).toEqual([
    1,
    `meterline: ${dataDir} is in use by process ${stack.child.pid}. Stop that one first, or choose another directory with METERLINE_DATA_DIR.\n`,
  ]);
});

it('npm start ends when a part does not start, says why, and leaves nothing running that started beside it', async () => {
  const { clickhouseUrl, clickhouseUser, clickhousePassword, redisUrl } = await readAddresses(dataDir);
  const directory = join(dataDir, 'failing');
  const variables = {
    ...startEnvironment(directory, ''),
    ACCOUNT_RATE: 'much',
    REDIS_URL: redisUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    CLICKHOUSE_USER: clickhouseUser,
    CLICKHOUSE_PASSWORD: clickhousePassword,
  };
  // While a part runs, the process does not end, and its folder cannot be opened.
  const failing = await failed(spawnStart(variables));
  expect(failing).toEqual([1, expect.stringMatching(/^meterline: .*ACCOUNT_RATE.*\n$/)]);
  (await DataDirectory.open(directory)).close();
});

it('npm start refuses a Redis cluster in one line', async () => {
  const redis = new RedisProcess(await findFreePort(), join(dataDir, 'cluster'));
  await redis.start('--cluster-enabled', 'yes');
  const variables = startEnvironment(join(dataDir, 'clustered'), '');
  const address = { REDIS_URL: `redis://127.0.0.1:${redis.port}` };
  expect(await failed(spawnStart({ ...variables, ...address }))).toEqual([
    1,
    expect.stringMatching(/^meterline: Redis at \S+ is a cluster, which Meterline cannot use: .*\n$/),
  ]);
  await redis.kill();
});

it('a service does not take the response of another stack, which has got its port meanwhile, for its own', async () => {
  const other = createServer((_request, response) => void response.end('ready'));
  const taken = Number(new URL(await listening(other)).port);
  const directory = await DataDirectory.open(join(dataDir, 'service'));
  const env = { ...process.env, REDIS_URL: (await readAddresses(dataDir)).redisUrl };
  const service = { name: 'collector', env, port: taken, adminPort: await findFreePort() } as const;
  await expect(startService(service, directory)).rejects.toThrow(`cannot listen on port ${taken} `);
  directory.close();
  other.close();
});

it('npm start leaves only data behind when a signal stops it', async () => {
  const addresses = await readAddresses(dataDir);
  stack.child.kill('SIGTERM');
  expect(await once(stack.child, 'exit')).toEqual([0, null]);
  expect(await arePortsFree(addresses)).toBe(true);
  const left = await readdir(dataDir);
  expect(left).not.toContain('local.json');
});
