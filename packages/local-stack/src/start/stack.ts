/** Starts every part after those that it needs. */
import { rm } from 'node:fs/promises';
import { warehouseOptions } from '@meterline/service';
import { createWarehouse, readDatabaseId, type WarehouseOptions } from '@meterline/warehouse';
import { Demo } from '../demo/demo.js';
import { type RunningClickHouse, startClickHouse } from '../engine/clickhouse.js';
import { DataDirectory } from '../engine/data-directory.js';
import { findFreePort, LOOPBACK } from '../engine/ports.js';
import { type RunningRedis, startRedis } from '../engine/redis.js';
import { writePrivateFile } from '../private-file.js';
import { ensureCursorSecret, ensureKeys, type LocalKeys } from './keys.js';
import { chooseApiPort, startService } from './services.js';
import type { Env } from './settings.js';
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
  /** Where Prometheus may read the metrics of each service. */
  readonly metricsUrls: readonly string[];
}

export interface StackOptions {
  readonly env: Env;
  readonly demo: boolean;
  readonly say: (line: string) => void;
  /** Aborted when nothing more should be started. */
  readonly stop: AbortSignal;
}

/** What has been started so far, to be stopped in reverse order whatever happens on the way. */
export class Session {
  readonly #parts: { stop(): Promise<void> }[] = [];

  add<T extends { stop(): Promise<void> }>(part: T): T {
    this.#parts.push(part);
    return part;
  }

  /** Each part is stopped even if one before it fails; the first failure is reported. */
  async stop(): Promise<void> {
    const failures: unknown[] = [];
    for (let part = this.#parts.pop(); part; part = this.#parts.pop()) {
      await part.stop().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}

/**
 * Adds each part to the session as soon as it runs, so that stopping the session undoes a start that failed halfway.
 *
 * @throws LocalStackError, RedisUnavailableError, or the reason of `stop`
 */
export async function startStack(session: Session, options: StackOptions): Promise<RunningStack> {
  const { env, say, stop } = options;
  const directory = await DataDirectory.open(env.METERLINE_DATA_DIR);
  session.add({ stop: () => directory.close() });
  const localFile = directory.file('local.json');
  // A stack that was killed has left one, with addresses that no longer answer.
  await rm(localFile, { force: true });
  const port = await chooseApiPort(env.PORT, say);

  const clickhouseUrl = env.CLICKHOUSE_URL ?? (await superviseClickHouse(session, directory, say));
  stop.throwIfAborted();
  const redisUrl = env.REDIS_URL ?? (await superviseRedis(session, directory, say));
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
    // A stack on a developer's machine must not be reachable from the network.
    LISTEN_HOST: LOOPBACK,
  };
  const ingestPort = await findFreePort();
  const ingestUrl = `http://${LOOPBACK}:${ingestPort}`;
  const ingestEnv = { ...serviceEnv, ADMIN_PORT: String(ingestPort) };
  const ingest = { name: 'ingest', env: ingestEnv, directory, url: ingestUrl, readyPath: '/healthz' } as const;
  session.add(await Supervised.start('The ingest service', () => startService(ingest), say));
  stop.throwIfAborted();

  const apiUrl = `http://${LOOPBACK}:${port}`;
  const queryAdminPort = await findFreePort();
  const queryEnv = {
    ...serviceEnv,
    PORT: String(port),
    ADMIN_PORT: String(queryAdminPort),
    CURSOR_SECRET: env.CURSOR_SECRET ?? (await ensureCursorSecret(directory.file('cursor-secret.json'))),
  };
  const query = { name: 'query', env: queryEnv, directory, url: apiUrl, readyPath: '/readyz' } as const;
  session.add(await Supervised.start('The query service', () => startService(query), say));
  stop.throwIfAborted();

  const keys = await ensureKeys(redisUrl, directory.file('keys.json'), new Date());
  if (options.demo) {
    const progress = {
      file: directory.file('demo-history.json'),
      databaseId: await databaseIdOf(warehouseOptions(clickhouse, 'meterline-demo')),
    };
    const queuePrefix = env.QUEUE_PREFIX;
    session.add(await Demo.start({ redisUrl, queuePrefix, account: keys.account, progress, say, stop }));
    stop.throwIfAborted();
  }

  const addresses = { apiUrl, redisUrl, clickhouseUrl, clickhouseDatabase: env.CLICKHOUSE_DATABASE, ...keys };
  await writePrivateFile(localFile, addresses);
  session.add({ stop: () => rm(localFile, { force: true }) });
  const metricsUrls = [ingestPort, queryAdminPort].map((adminPort) => `http://${LOOPBACK}:${adminPort}/metrics`);
  return { addresses, metricsUrls };
}

async function superviseClickHouse(
  session: Session,
  dataDir: DataDirectory,
  say: (line: string) => void,
): Promise<string> {
  const launch = (previous?: RunningClickHouse) =>
    startClickHouse({ dataDir, httpPort: previous?.httpPort, tcpPort: previous?.tcpPort });
  return session.add(await Supervised.start('ClickHouse', launch, say)).current.url;
}

async function superviseRedis(session: Session, dataDir: DataDirectory, say: (line: string) => void): Promise<string> {
  const launch = (previous?: RunningRedis) => startRedis({ dataDir, port: previous?.port, say });
  return session.add(await Supervised.start('Redis', launch, say)).current.url;
}

async function databaseIdOf(options: WarehouseOptions): Promise<string> {
  const warehouse = createWarehouse(options);
  try {
    return await readDatabaseId(warehouse);
  } finally {
    await warehouse.close();
  }
}
