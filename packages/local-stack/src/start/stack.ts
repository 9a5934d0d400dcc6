/** Brings everything up in the order in which one part needs the other. */
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { warehouseOptions } from '@meterline/service';
import { createWarehouse, readDatabaseId, type WarehouseOptions } from '@meterline/warehouse';
import { startClickHouse } from '../clickhouse.js';
import { Demo } from '../demo/demo.js';
import { lockDirectory } from '../directory-lock.js';
import { findFreePort, LOOPBACK } from '../ports.js';
import { startRedis } from '../redis.js';
import type { RunningClickHouse, RunningRedis } from '../running-server.js';
import { chooseApiPort } from './api-port.js';
import { ensureCursorSecret } from './cursor-secret.js';
import type { Env } from './env.js';
import { ensureKeys, type LocalKeys } from './keys.js';
import { makeDataDirectory } from './make-data-directory.js';
import { writePrivateFile } from './private-file.js';
import { startService } from './service-process.js';
import type { Session } from './session.js';
import { Supervised } from './supervised.js';

/** Where a running stack is; the content of `local.json`. */
export interface StackAddresses extends LocalKeys {
  readonly apiUrl: string;
  readonly redisUrl: string;
  readonly clickhouseUrl: string;
  readonly clickhouseDatabase: string;
}

export interface RunningStack {
  readonly addresses: StackAddresses;
  /** Where Prometheus may read what each service tells of itself. */
  readonly metricsUrls: readonly string[];
}

export interface StackOptions {
  readonly env: Env;
  readonly demo: boolean;
  readonly say: (line: string) => void;
  /** Aborted when nothing more should be started. */
  readonly stop: AbortSignal;
}

/**
 * Adds each part to the session as soon as it runs, so that stopping the session undoes a start that failed halfway.
 *
 * @throws LocalStackError, RedisUnavailableError, or the reason of `stop`
 */
export async function startStack(session: Session, options: StackOptions): Promise<RunningStack> {
  const { env, say, stop } = options;
  const dataDir = resolve(env.METERLINE_DATA_DIR);
  const file = (name: string) => join(dataDir, name);
  await makeDataDirectory(dataDir);
  const lock = await lockDirectory(file('stack.lock'), dataDir);
  session.add({ stop: () => lock.release() });
  // One that a killed stack has left behind leads nowhere.
  const withdraw = () => rm(file('local.json'), { force: true });
  await withdraw();
  const port = await chooseApiPort(env.PORT, say);

  const clickhouseUrl = env.CLICKHOUSE_URL ?? (await superviseClickHouse(session, dataDir, say));
  stop.throwIfAborted();
  const redisUrl = env.REDIS_URL ?? (await superviseRedis(session, dataDir, say));
  stop.throwIfAborted();

  const clickhouse = {
    CLICKHOUSE_URL: clickhouseUrl,
    // The embedded ClickHouse knows no other user.
    CLICKHOUSE_USER: (env.CLICKHOUSE_URL && env.CLICKHOUSE_USER) ?? 'default',
    CLICKHOUSE_PASSWORD: (env.CLICKHOUSE_URL && env.CLICKHOUSE_PASSWORD) ?? '',
    CLICKHOUSE_DATABASE: env.CLICKHOUSE_DATABASE,
  };
  const serviceEnv: NodeJS.ProcessEnv = {
    ...env.inherited,
    ...clickhouse,
    REDIS_URL: redisUrl,
    // Nobody else on the network is to reach a stack that somebody tries out.
    LISTEN_HOST: LOOPBACK,
  };
  const ingestAdminUrl = await superviseIngest(session, serviceEnv, dataDir, say);
  stop.throwIfAborted();

  const apiUrl = `http://${LOOPBACK}:${port}`;
  const cursorSecret = env.CURSOR_SECRET ?? (await ensureCursorSecret(file('cursor-secret.json')));
  const queryAdminPort = await findFreePort();
  const query = {
    name: 'query',
    env: { ...serviceEnv, PORT: String(port), ADMIN_PORT: String(queryAdminPort), CURSOR_SECRET: cursorSecret },
    dataDir,
    url: apiUrl,
    readyPath: '/readyz',
  } as const;
  session.add(await Supervised.start('The query service', () => startService(query), say));
  stop.throwIfAborted();

  const keys = await ensureKeys(redisUrl, file('keys.json'), new Date());
  if (options.demo) {
    const queuePrefix = env.QUEUE_PREFIX;
    const note = {
      file: file('demo-history.json'),
      databaseId: await databaseIdOf(warehouseOptions(clickhouse, 'meterline-demo')),
    };
    session.add(await Demo.start({ redisUrl, queuePrefix, account: keys.account, note, say, stop }));
    stop.throwIfAborted();
  }

  const addresses = { apiUrl, redisUrl, clickhouseUrl, clickhouseDatabase: env.CLICKHOUSE_DATABASE, ...keys };
  await writePrivateFile(file('local.json'), addresses);
  session.add({ stop: withdraw });
  const adminUrls = [ingestAdminUrl, `http://${LOOPBACK}:${queryAdminPort}`];
  return { addresses, metricsUrls: adminUrls.map((url) => `${url}/metrics`) };
}

async function databaseIdOf(options: WarehouseOptions): Promise<string> {
  const warehouse = createWarehouse(options);
  try {
    return await readDatabaseId(warehouse);
  } finally {
    await warehouse.close();
  }
}

async function superviseClickHouse(session: Session, dataDir: string, say: (line: string) => void): Promise<string> {
  const launch = (previous?: RunningClickHouse) =>
    startClickHouse({ dataDir, httpPort: previous?.httpPort, tcpPort: previous?.tcpPort });
  return session.add(await Supervised.start('ClickHouse', launch, say)).current.url;
}

async function superviseRedis(session: Session, dataDir: string, say: (line: string) => void): Promise<string> {
  const launch = (previous?: RunningRedis) => startRedis({ dataDir, port: previous?.port, say });
  return session.add(await Supervised.start('Redis', launch, say)).current.url;
}

/** @returns where its admin port is, also after a restart */
async function superviseIngest(
  session: Session,
  env: NodeJS.ProcessEnv,
  dataDir: string,
  say: (line: string) => void,
): Promise<string> {
  const adminPort = await findFreePort();
  const ingest = {
    name: 'ingest',
    env: { ...env, ADMIN_PORT: String(adminPort) },
    dataDir,
    url: `http://${LOOPBACK}:${adminPort}`,
    readyPath: '/healthz',
  } as const;
  session.add(await Supervised.start('The ingest service', () => startService(ingest), say));
  return ingest.url;
}
