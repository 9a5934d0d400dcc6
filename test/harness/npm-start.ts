/** `npm start` as a child process of a test, without the demo, in a data directory of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort, isPortFree } from '@meterline/local-stack';
import { z } from 'zod';
import { START, said } from './programs.js';

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

export interface Started {
  readonly child: ChildProcess;
  /** Everything printed until the last line of a start. */
  readonly summary: string;
  readonly port: number;
  readonly collectorPort: number;
}

/** Resolves when everything runs, on ports that were free. */
export async function startStack(dataDir: string): Promise<Started> {
  const [port, collectorPort] = await Promise.all([findFreePort(), findFreePort()]);
  const child = spawnStart(startEnvironment(dataDir, port), ['--collector-port', String(collectorPort)]);
  return { child, summary: await startedSummary(child), port, collectorPort };
}

export function startedSummary(child: ChildProcess): Promise<string> {
  return said(child, 'Ctrl-C stops everything');
}

export function spawnStart(env: NodeJS.ProcessEnv, args: readonly string[] = []): ChildProcess {
  return spawn(process.execPath, [START, '--no-demo', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Addresses of other servers in the developer's environment do not apply. */
export function startEnvironment(dataDir: string, port: number | ''): NodeJS.ProcessEnv {
  return { ...process.env, PORT: String(port), METERLINE_DATA_DIR: dataDir, REDIS_URL: '', CLICKHOUSE_URL: '' };
}

/** Addresses and keys of the stack that runs in the directory, from the file that the command line reads. */
export async function readAddresses(dataDir: string) {
  return addressesSchema.parse(JSON.parse(await readFile(join(dataDir, 'local.json'), 'utf8')));
}

export async function arePortsFree(addresses: Awaited<ReturnType<typeof readAddresses>>): Promise<boolean> {
  const urls = [addresses.apiUrl, addresses.collectorUrl, addresses.redisUrl, addresses.clickhouseUrl];
  const free = await Promise.all(urls.map((url) => isPortFree(Number(new URL(url).port))));
  return free.every(Boolean);
}

/** The group of the event that the summary's first command sends. */
export const MY_AGENT = { resourceName: 'my-agent', summary: { cost: 0.00014375 } };

/** The key and the URL of the summary's second command, which asks for metrics. */
export function queryIn(summary: string): { readonly key: string; readonly url: string } {
  const [, key = '', url = ''] = /Bearer (\w+)' \\\n +'(http\S+metrics\?\S+)'/.exec(summary) ?? [];
  return { key, url };
}

/** Runs the summary's second command. @returns the groups of its response */
export async function queryGroups(summary: string): Promise<unknown[]> {
  const { key, url } = queryIn(summary);
  const result = await fetch(url, { headers: { authorization: `Bearer ${key}`, connection: 'close' } });
  return metricsSchema.parse(await result.json()).data;
}
