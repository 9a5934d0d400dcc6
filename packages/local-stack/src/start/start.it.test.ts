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
  // A name that must be quoted in a shell.
  dataDir = await mkdtemp(join(tmpdir(), "meterline-it's-"));
  stack = await startStack(dataDir);
});
afterAll(async () => {
  stack.child.kill('SIGKILL');
  await rm(dataDir, { recursive: true, force: true, maxRetries: 20 });
});

/** Returns the exit code and standard error of a process that fails to start. */
async function failed(child: ChildProcess): Promise<[code: unknown, errors: string]> {
  const [[code], errors] = await Promise.all([once(child, 'close'), child.stderr ? text(child.stderr) : '']);
  return [code, errors];
}

/** Returns whether the port is in use on 127.0.0.1, and free on all other addresses of this machine. */
async function onlyOnLoopback(port: number): Promise<boolean> {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const others = all.filter(({ address }) => address !== '127.0.0.1' && !address.startsWith('fe80:'));
  const free = await Promise.all(others.map(({ address }) => isPortFree(port, address)));
  return !(await isPortFree(port)) && free.every(Boolean);
}

async function pageOf(url: string): Promise<string> {
  return (await fetch(url, { headers: { connection: 'close' } })).text();
}

/** Returns the accounts of a key, from the running API. */
async function accountsOf(apiUrl: string, key: string): Promise<unknown> {
  const response = await fetch(`${apiUrl}/v0/accounts`, {
    headers: { authorization: `Bearer ${key}`, connection: 'close' },
  });
  return response.json();
}

it('npm start prints all addresses, and listens only on the loopback address', async () => {
  const { apiUrl, collectorUrl, adminKey, memberKey, account } = await readAddresses(dataDir);
  expect(stack.summary).toContain(
    `\n  Web page   ${apiUrl}/ (sign in with the admin key)\n  API        ${apiUrl}\n  Collector  ${collectorUrl}\n`,
  );
  expect(stack.summary).toContain(`\n  Admin key  ${adminKey}\n`);
  expect(stack.summary).toContain(`\n  export METERLINE_DATA_DIR='${dataDir.replace("'", "'\\''")}'\n`);
  const metrics = /^ +(?:Metrics +)?(http\S+\/metrics) \(\w+\)$/gm;
  const urls = [...stack.summary.matchAll(metrics)].map(([, url = '']) => url);
  const pages = await Promise.all(urls.map(pageOf));
  expect(pages.map((page) => /meterline_service_info\{service="(\w+)"\}/.exec(page)?.[1])).toEqual([
    'ingest',
    'query',
    'collector',
    'alerts',
  ]);
  // The same ports at every start, except for a port of another process.
  for (const [index, url] of urls.entries()) {
    const usual = stack.port + 2 + index;
    const isUsed = stack.summary.includes(`Port ${usual} is in use; the admin server of `);
    expect([url, isUsed]).toEqual([isUsed ? url : `http://127.0.0.1:${usual}/metrics`, isUsed]);
  }
  expect((await stat(join(dataDir, 'local.json'))).mode & 0o777).toBe(0o600);
  expect(await accountsOf(apiUrl, adminKey)).toMatchObject([{ id: account, role: 'admin' }]);
  expect(await accountsOf(apiUrl, memberKey)).toMatchObject([{ role: 'member' }]);
  for (const listening of [stack.port, stack.collectorPort]) expect(await onlyOnLoopback(listening)).toBe(true);
});

it('the printed commands send an event and query its cost', async () => {
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

it('each process uses its own ClickHouse and Redis user, which has all rights it needs', async () => {
  const { clickhouseUrl, clickhouseUser, clickhousePassword, redisUrl } = await readAddresses(dataDir);
  const result = await fetch(clickhouseUrl, {
    method: 'POST',
    // All users that have run a statement.
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

it('npm start rejects a second copy with a message of one line', async () => {
  expect(await failed(spawnStart(startEnvironment(dataDir, '')))).toEqual([
    1,
    `meterline: ${dataDir} is in use by process ${stack.child.pid}. Stop that process, or set METERLINE_DATA_DIR to another directory.\n`,
  ]);
});

it('npm start exits with the reason if a part fails to start, and stops the other parts', async () => {
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
  // The directory can be opened only after all parts have ended.
  const failing = await failed(spawnStart(variables));
  expect(failing).toEqual([1, expect.stringMatching(/^meterline: .*ACCOUNT_RATE.*\n$/)]);
  (await DataDirectory.open(directory)).close();
});

it('npm start rejects a Redis cluster with a message of one line', async () => {
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

it('startService fails if another stack has taken the port of the service', async () => {
  const other = createServer((_request, response) => void response.end('ready'));
  const taken = Number(new URL(await listening(other)).port);
  const directory = await DataDirectory.open(join(dataDir, 'service'));
  const env = { ...process.env, REDIS_URL: (await readAddresses(dataDir)).redisUrl };
  // The other stack responds to the health checks of this service, too.
  for (const port of [taken, await findFreePort()]) {
    const service = { name: 'collector', env, port, adminPort: taken } as const;
    await expect(startService(service, directory)).rejects.toThrow(`Port ${taken} on 127.0.0.1`);
  }
  directory.close();
  other.close();
});

it('after a signal, npm start leaves only data behind', async () => {
  const addresses = await readAddresses(dataDir);
  stack.child.kill('SIGTERM');
  expect(await once(stack.child, 'exit')).toEqual([0, null]);
  expect(await arePortsFree(addresses)).toBe(true);
  const left = await readdir(dataDir);
  expect(left).not.toContain('local.json');
});
