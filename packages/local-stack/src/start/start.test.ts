import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { z } from 'zod';
import { findFreePort, isPortFree } from '../ports.js';

jest.setTimeout(60_000);

const START = fileURLToPath(new URL('../../bin/start.js', import.meta.url));
const addressesSchema = z.object({
  apiUrl: z.url(),
  redisUrl: z.url(),
  clickhouseUrl: z.url(),
  clickhouseDatabase: z.literal('meterline'),
  account: z.string(),
  adminKey: z.string(),
  memberKey: z.string(),
});

let dataDir: string;
let port: number;
let supervisor: ChildProcess | undefined;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'meterline-start-'));
  port = await findFreePort();
});
afterEach(async () => {
  supervisor?.kill('SIGKILL');
  await rm(dataDir, { recursive: true, force: true, maxRetries: 20 });
});

function start(): ChildProcess {
  const env = { ...process.env, METERLINE_DATA_DIR: dataDir, PORT: String(port), REDIS_URL: '', CLICKHOUSE_URL: '' };
  supervisor = spawn(process.execPath, [START, '--no-demo'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  return supervisor;
}

/** Resolves when the process has printed the text, with all that it has printed. */
function said(child: ChildProcess, text: string): Promise<string> {
  return new Promise((resolve) => {
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
      if (output.includes(text)) resolve(output);
    });
  });
}

async function readAddresses() {
  return addressesSchema.parse(JSON.parse(await readFile(join(dataDir, 'local.json'), 'utf8')));
}

async function portsFree(addresses: { apiUrl: string; redisUrl: string; clickhouseUrl: string }): Promise<boolean> {
  const urls = [addresses.apiUrl, addresses.redisUrl, addresses.clickhouseUrl];
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

describe('npm start', () => {
  it('says where everything is, and leaves only data behind when told to stop', async () => {
    const child = start();
    const metrics = /^ +(?:Metrics +)?(http\S+\/metrics)$/gm;
    const summary = await said(child, 'Ctrl-C stops everything');
    const pages = await Promise.all([...summary.matchAll(metrics)].map(([, url = '']) => pageOf(url)));
    expect(pages.map((page) => /meterline_(jobs_taken|http_request)/.exec(page)?.[1])).toEqual([
      'jobs_taken',
      'http_request',
    ]);
    const addresses = await readAddresses();
    expect((await stat(join(dataDir, 'local.json'))).mode & 0o777).toBe(0o600);
    expect(await accountsOf(addresses.apiUrl, addresses.adminKey)).toMatchObject([
      { id: addresses.account, role: 'admin' },
    ]);
    expect(await accountsOf(addresses.apiUrl, addresses.memberKey)).toMatchObject([{ role: 'member' }]);
    expect(await onlyOnLoopback(port)).toBe(true);

    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(await portsFree(addresses)).toBe(true);
    expect(existsSync(join(dataDir, 'local.json'))).toBe(false);
  });

  it('keeps its keys over a restart, also after it was killed', async () => {
    const first = start();
    await said(first, 'Meterline is running.');
    const { adminKey } = await readAddresses();
    first.kill('SIGKILL');
    await once(first, 'exit');

    port = await findFreePort();
    const second = start();
    await said(second, 'Meterline is running.');
    expect((await readAddresses()).adminKey).toBe(adminKey);
    second.kill('SIGTERM');
    await once(second, 'exit');
  });

  it('brings back a Redis that was killed', async () => {
    const child = start();
    await said(child, 'Meterline is running.');
    const lock = z.object({ servers: z.array(z.object({ pid: z.int() })) });
    const { servers } = lock.parse(JSON.parse(await readFile(join(dataDir, 'redis.lock'), 'utf8')));
    const back = said(child, 'Redis is back.');
    process.kill(servers.at(-1)?.pid ?? Number.NaN, 'SIGKILL');
    await back;
  });
});
