/** Starts every part after those that it needs, and side by side those that do not need each other. */
import { rm } from 'node:fs/promises';
import { warehouseOptions } from '@meterline/service';
import { createWarehouse, hostsOf, migrate, readDatabaseId, type WarehouseOptions } from '@meterline/warehouse';
import { Demo } from '../demo/demo.js';
import { type RunningClickHouse, startClickHouse } from '../engine/clickhouse.js';
import { CLUSTER } from '../engine/clickhouse-config.js';
import { DataDirectory } from '../engine/data-directory.js';
import { findFreePort, LOOPBACK } from '../engine/ports.js';
import { type RunningRedis, startRedis } from '../engine/redis.js';
import type { RedisUser } from '../engine/redis-users.js';
import { planShards } from '../engine/shards.js';
import { writePrivateFile } from '../private-file.js';
import { ensureCursorSecret, ensureKeys, type LocalKeys } from './keys.js';
import { choosePort, type ServiceOptions, startService } from './services.js';
import type { Env } from './settings.js';
import { Supervised } from './supervised.js';

const API = { listener: 'the API', variable: 'PORT', usual: 8080 } as const;
const COLLECTOR = { listener: 'the collector', variable: 'COLLECTOR_PORT', usual: 8081 } as const;

/** Where a running stack is; the content of `local.json`. */
export interface StackAddresses extends LocalKeys {
  readonly apiUrl: string;
  /** Where events are sent to over HTTP. */
  readonly collectorUrl: string;
  readonly redisUrl: string;
  readonly clickhouseUrl: string;
  /** Of several shards: the addresses of all, separated by commas. {@link clickhouseUrl} is the first, and leads to all. */
  readonly clickhouseHosts?: string;
  readonly clickhouseCluster?: string;
  readonly clickhouseUser: string;
  readonly clickhousePassword: string;
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
  readonly shards: number;
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
 * @throws LocalStackError, RedisUnavailableError, MigrationError, or the reason of `stop`
 */
export async function startStack(session: Session, options: StackOptions): Promise<RunningStack> {
  const { env, say, stop } = options;
  const directory = await DataDirectory.open(env.METERLINE_DATA_DIR);
  session.add({ stop: () => directory.close() });
  const localFile = directory.file('local.json');
  // A stack that was killed has left one, with addresses that no longer answer.
  await rm(localFile, { force: true });
  const port = await choosePort({ ...API, wanted: env.PORT }, say);
  const collectorPort = await choosePort({ ...COLLECTOR, wanted: env.COLLECTOR_PORT }, say);
  const collectorUrl = atPort(collectorPort);

  const [clickhouse, redis] = await sideBySide([
    givenClickHouse(env) ?? superviseClickHouse(session, directory, options),
    givenRedis(env) ?? superviseRedis(session, directory, env, say),
  ]);
  stop.throwIfAborted();

  const serviceEnv: NodeJS.ProcessEnv = {
    ...env.inherited,
    // A stack on a developer's machine must not be reachable from the network.
    LISTEN_HOST: LOOPBACK,
  };
  // All at once, so that no two are the same.
  const adminPorts = await Promise.all([findFreePort(), findFreePort(), findFreePort()]);
  const [ingestPort, queryAdminPort, collectorAdminPort] = adminPorts;
  const ingestEnv = { ...serviceEnv, ...clickhouse.ingest, REDIS_URL: redis.worker, ADMIN_PORT: String(ingestPort) };
  const ingest = { name: 'ingest', env: ingestEnv, directory, adminUrl: atPort(ingestPort) } as const;

  const apiUrl = atPort(port);
  const queryEnv = {
    ...serviceEnv,
    ...clickhouse.query,
    REDIS_URL: redis.query,
    PORT: String(port),
    ADMIN_PORT: String(queryAdminPort),
    COLLECTOR_URL: collectorUrl,
    CURSOR_SECRET: env.CURSOR_SECRET ?? (await ensureCursorSecret(directory.file('cursor-secret.json'))),
  };
  const query = { name: 'query', env: queryEnv, directory, url: apiUrl, adminUrl: atPort(queryAdminPort) } as const;

  const collectorEnv = {
    ...serviceEnv,
    REDIS_URL: redis.collector,
    PORT: String(collectorPort),
    ADMIN_PORT: String(collectorAdminPort),
  };
  const adminUrl = atPort(collectorAdminPort);
  const collector = { name: 'collector', env: collectorEnv, directory, url: collectorUrl, adminUrl } as const;

  const launch = async (name: string, service: ServiceOptions) => {
    session.add(await Supervised.start(name, () => startService(service), say));
  };
  await sideBySide([
    launch('The ingest service', ingest),
    launch('The query service', query),
    launch('The collector', collector),
  ]);
  stop.throwIfAborted();

  const keys = await ensureKeys(redis.operator, directory.file('keys.json'), new Date());
  if (options.demo) {
    const progress = {
      file: directory.file('demo-history.json'),
      databaseId: await databaseIdOf(warehouseOptions(clickhouse.migrate, 'meterline-demo')),
    };
    const { account, emitterKey } = keys;
    const queue = { url: redis.operator, prefix: env.QUEUE_PREFIX };
    session.add(await Demo.start({ collectorUrl, emitterKey, queue, account, progress, say, stop }));
    stop.throwIfAborted();
  }

  const addresses = {
    apiUrl,
    collectorUrl,
    redisUrl: redis.person,
    ...clickHouseAddresses(clickhouse.person),
    ...keys,
  };
  await writePrivateFile(localFile, addresses);
  session.add({ stop: () => rm(localFile, { force: true }) });
  const metricsUrls = adminPorts.map((adminPort) => `${atPort(adminPort)}/metrics`);
  return { addresses, metricsUrls };
}

/**
 * Waits until each has started or failed, also when one fails: what has started is then in the session, which stops it.
 *
 * @throws what the first of those that failed threw
 */
async function sideBySide<const Starts extends readonly unknown[]>(
  starts: Starts,
): Promise<{ -readonly [Index in keyof Starts]: Awaited<Starts[Index]> }> {
  await Promise.allSettled(starts);
  return Promise.all(starts);
}

/** The variables that lead a process to a ClickHouse. */
type ClickHouseVariables = Record<`CLICKHOUSE_${'URL' | 'USER' | 'PASSWORD' | 'DATABASE'}`, string> & {
  /** Of several embedded servers. */
  readonly CLICKHOUSE_CLUSTER?: string;
};

/** The same ClickHouse, as the user of each: `person` is who reads `local.json`, `migrate` this process. */
type ClickHouseLogins = Readonly<Record<'ingest' | 'query' | 'migrate' | 'person', ClickHouseVariables>>;

/** Undefined: none is given, and the embedded one is to be started. One user is given, for all. */
function givenClickHouse(env: Env): ClickHouseLogins | undefined {
  if (env.CLICKHOUSE_URL === undefined) return undefined;
  const given = {
    CLICKHOUSE_URL: env.CLICKHOUSE_URL,
    CLICKHOUSE_USER: env.CLICKHOUSE_USER ?? 'default',
    CLICKHOUSE_PASSWORD: env.CLICKHOUSE_PASSWORD ?? '',
    CLICKHOUSE_DATABASE: env.CLICKHOUSE_DATABASE,
  };
  return { ingest: given, query: given, migrate: given, person: given };
}

async function superviseClickHouse(
  session: Session,
  dataDir: DataDirectory,
  { env, shards: count, say }: StackOptions,
): Promise<ClickHouseLogins> {
  const database = env.CLICKHOUSE_DATABASE;
  const servers: RunningClickHouse[] = [];
  for (const shard of await planShards(count, dataDir.path)) {
    const name = shard ? `ClickHouse shard ${shard.number}` : 'ClickHouse';
    const launch = (previous?: RunningClickHouse) =>
      startClickHouse({ dataDir, database, shard, httpPort: previous?.httpPort });
    servers.push(session.add(await Supervised.start(name, launch, say)).current);
  }
  const [first] = servers;
  if (!first) throw new Error('there is at least one server');
  const { user: owner, passwords } = first;
  const as = (user: keyof typeof passwords): ClickHouseVariables => ({
    CLICKHOUSE_URL: servers.map(({ url }) => url).join(','),
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: passwords[user],
    CLICKHOUSE_DATABASE: database,
    ...(count > 1 && { CLICKHOUSE_CLUSTER: CLUSTER }),
  });
  await migrate(warehouseOptions(as('migrate'), 'meterline-start'), say);
  return { ingest: as('ingest'), query: as('query'), migrate: as('migrate'), person: as(owner) };
}

/** As in `local.json`, whose reader may know of one server alone. */
function clickHouseAddresses(person: ClickHouseVariables) {
  const { CLICKHOUSE_URL: hosts, CLICKHOUSE_CLUSTER: cluster } = person;
  return {
    clickhouseUrl: hostsOf(hosts)[0] ?? hosts,
    ...(cluster !== undefined && { clickhouseHosts: hosts, clickhouseCluster: cluster }),
    clickhouseUser: person.CLICKHOUSE_USER,
    clickhousePassword: person.CLICKHOUSE_PASSWORD,
    clickhouseDatabase: person.CLICKHOUSE_DATABASE,
  };
}

/** The address of the same Redis for the user of each: `person` is who reads `local.json`. */
type RedisLogins = Readonly<Record<RedisUser | 'person', string>>;

/** Undefined: none is given, and a local one is to be started. One user is given, for all. */
function givenRedis({ REDIS_URL: url }: Env): RedisLogins | undefined {
  if (url === undefined) return undefined;
  return { producer: url, collector: url, worker: url, query: url, operator: url, person: url };
}

async function superviseRedis(
  session: Session,
  dataDir: DataDirectory,
  { QUEUE_PREFIX: queuePrefix }: Env,
  say: (line: string) => void,
): Promise<RedisLogins> {
  const launch = (previous?: RunningRedis) => startRedis({ dataDir, port: previous?.port, queuePrefix, say });
  const { url, urls } = session.add(await Supervised.start('Redis', launch, say)).current;
  return { ...urls, person: url };
}

/** Of several hosts, on the first: it has another on each. */
async function databaseIdOf(options: WarehouseOptions): Promise<string> {
  const warehouse = createWarehouse({ ...options, url: hostsOf(options.url)[0] ?? options.url });
  try {
    return await readDatabaseId(warehouse);
  } finally {
    await warehouse.close();
  }
}

function atPort(port: number): string {
  return `http://${LOOPBACK}:${port}`;
}
