import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { networkInterfaces, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { listening } from '../../../../test/harness/listening.js';
import { START, said } from '../../../../test/harness/programs.js';
import { DataDirectory } from '../data-directory.js';
import { findFreePort, isPortFree } from '../ports.js';
import { startService } from './services.js';

jest.setTimeout(300_000);

const addressesSchema = z.object({
  apiUrl: z.url(),
  collectorUrl: z.url(),
  redisUrl: z.url(),
  clickhouseUrl: z.url(),
  clickhouseUser: z.literal('meterline'),
  clickhousePassword: z.string().min(16),
  clickhouseDatabase: z.literal('meterline'),
  account: z.string(),
  adminKey: z.string(),
  memberKey: z.string(),
  emitterKey: z.string(),
});

const metricsSchema = z.object({ data: z.array(z.unknown()) });

let dataDir: string;
let port: number;
let collectorPort: number;
let stack: ChildProcess;
let summary: string;

beforeAll(async () => {
  // A name that a shell must be given in quotes.
  dataDir = await mkdtemp(join(tmpdir(), "meterline-it's-"));
  await startStack();
});
afterAll(async () => {
  stack.kill('SIGKILL');
  await rm(dataDir, { recursive: true, force: true, maxRetries: 20 });
});

/** Starts the stack that the tests share, on another port each time. */
async function startStack(): Promise<void> {
  [port, collectorPort] = await Promise.all([findFreePort(), findFreePort()]);
  stack = spawnStart();
  summary = await said(stack, 'Ctrl-C stops everything');
}

function spawnStart(
  variables: NodeJS.ProcessEnv = {},
  args = ['--collector-port', String(collectorPort)],
): ChildProcess {
  const env = { ...environment(), ...variables };
  return spawn(process.execPath, [START, '--no-demo', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

function environment(): NodeJS.ProcessEnv {
  const own = { PORT: String(port), METERLINE_DATA_DIR: dataDir, REDIS_URL: '', CLICKHOUSE_URL: '' };
  return { ...process.env, ...own };
}

/** The exit code of a process that cannot start, and what it has said about that. */
async function failed(child: ChildProcess): Promise<[code: unknown, errors: string]> {
  const [[code], errors] = await Promise.all([once(child, 'close'), child.stderr ? text(child.stderr) : '']);
  return [code, errors];
}

async function redisPid(url: string): Promise<number> {
  const redis = new Redis(url);
  try {
    return Number(/^process_id:(\d+)/m.exec(await redis.info('server'))?.[1]);
  } finally {
    redis.disconnect();
  }
}

async function readAddresses(directory = dataDir) {
  return addressesSchema.parse(JSON.parse(await readFile(join(directory, 'local.json'), 'utf8')));
}

async function portsFree(addresses: Awaited<ReturnType<typeof readAddresses>>): Promise<boolean> {
  const urls = [addresses.apiUrl, addresses.collectorUrl, addresses.redisUrl, addresses.clickhouseUrl];
  const free = await Promise.all(urls.map((url) => isPortFree(Number(new URL(url).port))));
  return free.every(Boolean);
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

/** What is counted of the printed event. */
const MY_AGENT = { resourceName: 'my-agent', summary: { cost: 0.00014375 } };

/** The query of the printed command. */
function queryIn(said: string): { readonly key: string; readonly url: string } {
  const [, key = '', url = ''] = /Bearer (\w+)' \\\n +'(http\S+metrics\?\S+)'/.exec(said) ?? [];
  return { key, url };
}

async function groupsSaidBy(said: string): Promise<unknown[]> {
  const { key, url } = queryIn(said);
  const result = await fetch(url, { headers: { authorization: `Bearer ${key}`, connection: 'close' } });
  return metricsSchema.parse(await result.json()).data;
}

it('npm start says where everything is, on the loopback address alone', async () => {
  const { apiUrl, collectorUrl, adminKey, memberKey, account } = await readAddresses();
  expect(summary).toContain(
    `\n  Web page   ${apiUrl}/ (sign in with the admin key)\n  API        ${apiUrl}\n  Collector  ${collectorUrl}\n`,
  );
  expect(summary).toContain(`\n  Admin key  ${adminKey}\n`);
  expect(summary).toContain(`\n  export METERLINE_DATA_DIR='${dataDir.replace("'", "'\\''")}'\n`);
  const metrics = /^ +(?:Metrics +)?(http\S+\/metrics) \(\w+\)$/gm;
  const pages = await Promise.all([...summary.matchAll(metrics)].map(([, url = '']) => pageOf(url)));
  expect(pages.map((page) => /meterline_service_info\{service="(\w+)"\}/.exec(page)?.[1])).toEqual([
    'ingest',
    'query',
    'collector',
    'alerts',
  ]);
  expect((await stat(join(dataDir, 'local.json'))).mode & 0o777).toBe(0o600);
  expect(await accountsOf(apiUrl, adminKey)).toMatchObject([{ id: account, role: 'admin' }]);
  expect(await accountsOf(apiUrl, memberKey)).toMatchObject([{ role: 'member' }]);
  for (const listening of [port, collectorPort]) expect(await onlyOnLoopback(listening)).toBe(true);
});

it('npm start stores and prices what the printed commands send and ask', async () => {
  const { emitterKey, adminKey } = await readAddresses();
  const [, key, url = '', body = ''] = /Bearer (\w+)'[^']*'[^']*'[^']*'(http\S+events)'[^']*'(.*)'/.exec(summary) ?? [];
  expect(key).toBe(emitterKey);
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' };
  const sent = await fetch(url, { method: 'POST', headers, body });
  expect([sent.status, await sent.json()]).toMatchObject([202, { accepted: 1 }]);
  expect(queryIn(summary).key).toBe(adminKey);
  while ((await groupsSaidBy(summary)).length === 0) await sleep(100);
  expect(await groupsSaidBy(summary)).toMatchObject([MY_AGENT]);
});

it('npm start lets each process into ClickHouse and Redis as a user of its own, which lacks no right', async () => {
  const { clickhouseUrl, clickhouseUser, clickhousePassword, redisUrl } = await readAddresses();
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
  expect(await failed(spawnStart())).toEqual([
    1,
    `meterline: ${dataDir} is in use by process ${stack.pid}. Stop that one first, or choose another directory with METERLINE_DATA_DIR.\n`,
  ]);
});

it('npm start ends when a part does not start, says why, and leaves nothing running that started beside it', async () => {
  const { clickhouseUrl, clickhouseUser, clickhousePassword, redisUrl } = await readAddresses();
  const directory = join(dataDir, 'failing');
  const variables = {
    ...{ METERLINE_DATA_DIR: directory, PORT: '', ACCOUNT_RATE: 'much', REDIS_URL: redisUrl },
    ...{ CLICKHOUSE_URL: clickhouseUrl, CLICKHOUSE_USER: clickhouseUser, CLICKHOUSE_PASSWORD: clickhousePassword },
  };
  // While a part runs, the process does not end, and its folder cannot be opened.
  const failing = await failed(spawnStart(variables, []));
  expect(failing).toEqual([1, expect.stringMatching(/^meterline: .*ACCOUNT_RATE.*\n$/)]);
  (await DataDirectory.open(directory)).close();
});

it('a service does not take the response of another stack, which has got its port meanwhile, for its own', async () => {
  const other = createServer((_request, response) => void response.end('ready'));
  const taken = Number(new URL(await listening(other)).port);
  const directory = await DataDirectory.open(join(dataDir, 'service'));
  const env = { ...process.env, REDIS_URL: (await readAddresses()).redisUrl };
  const service = { name: 'collector', env, port: taken, adminPort: await findFreePort() } as const;
  await expect(startService(service, directory)).rejects.toThrow(`cannot listen on port ${taken} `);
  directory.close();
  other.close();
});

it('npm start keeps its keys over a restart, also after it was killed', async () => {
  const { adminKey, emitterKey } = await readAddresses();
  stack.kill('SIGKILL');
  await once(stack, 'exit');
  await startStack();
  expect(await readAddresses()).toMatchObject({ adminKey, emitterKey });
});

it('npm start goes on when nobody reads any more what it says, as with `npm start | head`', async () => {
  const { redisUrl } = await readAddresses();
  stack.stdout?.destroy();
  stack.stderr?.destroy();
  const before = await redisPid(redisUrl);
  // It says so, twice.
  process.kill(before, 'SIGKILL');
  while ((await redisPid(redisUrl)) === before);
  expect(stack.exitCode).toBeNull();
});

it('npm start leaves only data behind when a signal stops it', async () => {
  const addresses = await readAddresses();
  stack.kill('SIGTERM');
  expect(await once(stack, 'exit')).toEqual([0, null]);
  expect(await portsFree(addresses)).toBe(true);
  const left = await readdir(dataDir);
  expect(left).not.toContain('local.json');
});

it('npm start goes on from a copy of a data directory, and ends when the process that started it is gone', async () => {
  const directory = join(dataDir, '..', `${basename(dataDir)}-copy`);
  await cp(dataDir, directory, { recursive: true });
  const variables = { METERLINE_DATA_DIR: directory, PORT: '', npm_lifecycle_event: 'start' };
  const shell = spawn('sh', ['-c', `"${process.execPath}" "${START}" --no-demo; true`], {
    env: { ...environment(), ...variables },
  });
  expect(await groupsSaidBy(await said(shell, 'Ctrl-C stops everything'))).toMatchObject([MY_AGENT]);
  const addresses = await readAddresses(directory);
  shell.kill('SIGTERM');
  // The output of the stack too, which has inherited it.
  await once(shell, 'close');
  expect(await portsFree(addresses)).toBe(true);
  expect(await readdir(directory)).not.toContain('local.json');
  await rm(directory, { recursive: true });
});
