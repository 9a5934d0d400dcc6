/**
 * The ClickHouse and Redis that all test files of a run share. `npm run test:servers` runs this file: it keeps them until Ctrl-C, and
 * runs of tests use them meanwhile instead of starting their own.
 */
import { once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLUSTER, startServers } from '@meterline/local-stack';
import { migrate } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { startBalancer } from './balancer.mjs';
import { HOSTILE_PROFILE } from './hostile-profile.mjs';
import { createTestFolder } from './test-folder.mjs';

const KEPT = fileURLToPath(new URL('../../node_modules/.cache/test-servers.json', import.meta.url));
/** An empty database with the schema; each test file copies it. */
const TEMPLATE = 'test_template';

/**
 * Uses the servers that `npm run test:servers` keeps, or starts servers.
 *
 * @param {number} shards
 * @returns {Promise<{ env: Record<string, string>, stop: () => Promise<void> }>} `env`: the variables of the test workers, as
 *   global-setup.mjs documents them
 */
export async function openTestServers(shards) {
  const kept = shards === 1 && process.env.METERLINE_TEST_PROFILE === undefined ? await keptServers() : undefined;
  const servers = kept ? { env: kept, stop: async () => undefined } : await startTestServers(shards);
  const { METERLINE_TEST_CLICKHOUSE_URL: url, METERLINE_TEST_CLICKHOUSE_USER: user } = servers.env;
  const password = servers.env.METERLINE_TEST_CLICKHOUSE_PASSWORD;
  const cluster = shards > 1 ? { name: CLUSTER, insertQuorum: undefined } : undefined;
  await migrate({ url, user, password, cluster, application: 'meterline-test', database: TEMPLATE });
  return servers;
}

async function startTestServers(shards) {
  const profile = process.env.METERLINE_TEST_PROFILE === 'hostile' ? HOSTILE_PROFILE : undefined;
  const servers = await startServers({ shards, profile, say: console.log });
  const balancer = shards > 1 ? await startBalancer(servers.shards.map(({ httpPort }) => httpPort)) : undefined;
  const { user, password } = servers.clickhouse;
  return {
    env: {
      METERLINE_TEST_CLICKHOUSE_URL: servers.shards.map(({ url }) => url).join(','),
      METERLINE_TEST_CLICKHOUSE_USER: user,
      METERLINE_TEST_CLICKHOUSE_PASSWORD: password,
      METERLINE_TEST_REDIS_URL: servers.redis.url,
      METERLINE_TEST_TEMPLATE: TEMPLATE,
      ...(balancer && { METERLINE_TEST_BALANCER: balancer.url }),
    },
    stop: async () => {
      balancer?.stop();
      await servers.stop();
    },
  };
}

/** @returns the variables of servers that are kept and respond, or undefined */
async function keptServers() {
  try {
    const env = JSON.parse(await readFile(KEPT, 'utf8'));
    const ping = await fetch(`${env.METERLINE_TEST_CLICKHOUSE_URL}/ping`);
    const redis = new Redis(env.METERLINE_TEST_REDIS_URL, { lazyConnect: true, retryStrategy: () => null });
    redis.on('error', () => undefined);
    await redis.ping().finally(() => redis.disconnect());
    return ping.ok ? env : undefined;
  } catch {
    // No file, or its servers have ended.
    return undefined;
  }
}

async function keepServers() {
  const folder = await createTestFolder();
  process.env.TMPDIR = folder;
  const { env, stop } = await startTestServers(1);
  await mkdir(dirname(KEPT), { recursive: true });
  await writeFile(KEPT, JSON.stringify(env), { mode: 0o600 });
  console.log('Tests use these servers until Ctrl-C.');
  await Promise.race(['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => once(process, signal)));
  await rm(KEPT, { force: true });
  await stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 20 });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await keepServers();
