/** Starts every part after those that it needs, and side by side those that do not need each other. */
import { rm } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { checkRedis } from '@meterline/service';
import { ApiKeyStore } from '@meterline/service/access';
import { warehouseOptions } from '@meterline/service/environment';
import { createWarehouse, hostsOf, migrate, readDatabaseId, type WarehouseOptions } from '@meterline/warehouse';
import { z } from 'zod';
import { CLUSTER, OWNER, type Passwords } from '../clickhouse-config.js';
import { DataDirectory, passwordOf, readPrivateFile, writePrivateFile } from '../data-directory.js';
import { Demo } from '../demo.js';
import { findFreePort } from '../ports.js';
import type { RedisUser } from '../redis.js';
import { type Servers, startServers } from '../servers.js';
import { choosePort, type ServiceOptions, Supervised, startService, urlAt } from './services.js';
import type { CommandLine, Env } from './settings.js';

const LOCAL_ACCOUNT = 'demo';
const CLIENT_ID = 'local-stack';

/** The roles, by the name that the key of each has in `local.json`. */
const KEYS = { adminKey: 'admin', memberKey: 'member', emitterKey: 'emitter' } as const;

const keysSchema = z
  .object({ account: z.string(), adminKey: z.string(), memberKey: z.string(), emitterKey: z.string() })
  .partial();

/** Webhooks may go there, also without TLS. */
export const LOCAL_HOSTS = '127.0.0.1,localhost,[::1]';

/** What runs, and where. */
export type RunningStack = Awaited<ReturnType<typeof startStack>>;

export interface StackOptions extends Omit<CommandLine, 'help'> {
  readonly env: Env;
  readonly say: (line: string) => void;
  /** Aborted when nothing more should be started. */
  readonly stop: AbortSignal;
}

/** What has been started so far, to be stopped in reverse order whatever happens on the way. */
export class Session {
  readonly #parts: { stop(): Promise<void> }[] = [];

  add(part: { stop(): Promise<void> }): void {
    this.#parts.push(part);
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
 * @throws LocalStackError, MigrationError, StartError, or the reason of `stop`
 */
export async function startStack(session: Session, options: StackOptions) {
  const { env, say, stop } = options;
  const directory = await DataDirectory.open(env.METERLINE_DATA_DIR);
  session.add({ stop: async () => directory.close() });
  const localFile = directory.file('local.json');
  // A stack that was killed has left one, with addresses that no longer answer.
  await rm(localFile, { force: true });
  const port = await choosePort('the API', env.PORT, 8080, say, options.collectorPort);
  const collectorPort = await choosePort('the collector', options.collectorPort, 8081, say, port);
  const collectorUrl = urlAt(collectorPort);

  if (env.REDIS_URL !== undefined) await checkRedis(env.REDIS_URL);
  const servers = await startOwnServers(session, directory, options);
  const clickhouse = clickHouseLogins(env, servers);
  const redis = (user: RedisUser) => ({ REDIS_URL: env.REDIS_URL ?? servers.redis.urls[user] });
  if (env.CLICKHOUSE_URL === undefined) await migrate(warehouseOptions(clickhouse('migrate'), 'meterline-start'));
  stop.throwIfAborted();

  const adminPorts = await Promise.all([findFreePort(), findFreePort(), findFreePort(), findFreePort()]);
  const [ingestPort, queryAdminPort, collectorAdminPort, alertsPort] = adminPorts;
  const CURSOR_SECRET = env.CURSOR_SECRET ?? passwordOf(directory.secret, 'cursors');
  // A developer's receiver listens on this machine.
  const webhooks = { ALERT_ALLOWED_HOSTS: LOCAL_HOSTS };
  const own = { COLLECTOR_URL: collectorUrl, CURSOR_SECRET, ...webhooks };
  const services: readonly ServiceOptions[] = [
    { name: 'ingest', env: { ...clickhouse('ingest'), ...redis('worker') }, adminPort: ingestPort },
    { name: 'query', env: { ...clickhouse('query'), ...redis('query'), ...own }, port, adminPort: queryAdminPort },
    { name: 'collector', env: redis('collector'), port: collectorPort, adminPort: collectorAdminPort },
    { name: 'alerts', env: { ...clickhouse('query'), ...redis('alerts'), ...webhooks }, adminPort: alertsPort },
  ];
  const starts = services.map(async (service) => {
    const started = await startService({ ...service, env: { ...env.inherited, ...service.env } }, directory);
    session.add(new Supervised(started, say));
  });
  // What has started is in the session, which stops it if another one fails.
  await Promise.allSettled(starts);
  await Promise.all(starts);
  stop.throwIfAborted();

  const { REDIS_URL: operator } = redis('operator');
  const keys = await ensureKeys(operator, directory.file('keys.json'), new Date());
  if (options.demo) {
    const file = directory.file('demo.json');
    const databaseId = await databaseIdOf(warehouseOptions(clickhouse('migrate'), 'meterline-demo'));
    const queue = { url: operator, prefix: env.QUEUE_PREFIX };
    session.add(await Demo.start({ collectorUrl, ...keys, queue, file, databaseId, say, stop }));
    stop.throwIfAborted();
  }

  const { CLICKHOUSE_URL: hosts, CLICKHOUSE_CLUSTER: cluster, ...person } = clickhouse(OWNER);
  /** The content of `local.json`. */
  const addresses = {
    apiUrl: urlAt(port),
    collectorUrl,
    redisUrl: redis('admin').REDIS_URL,
    clickhouseUrl: hostsOf(hosts)[0] ?? hosts,
    // clickhouseHosts: the addresses of all shards, separated by commas. clickhouseUrl is the first, and leads to all.
    ...(cluster !== undefined && { clickhouseHosts: hosts, clickhouseCluster: cluster }),
    clickhouseUser: person.CLICKHOUSE_USER,
    clickhousePassword: person.CLICKHOUSE_PASSWORD,
    clickhouseDatabase: person.CLICKHOUSE_DATABASE,
    ...keys,
  };
  await writePrivateFile(localFile, addresses);
  session.add({ stop: () => rm(localFile, { force: true }) });
  // metricsUrls: where Prometheus may read the metrics, with the name of the service.
  return { addresses, metricsUrls: services.map(({ name, adminPort }) => `${urlAt(adminPort)}/metrics (${name})`) };
}

/** Starts the servers whose addresses the environment does not give. */
async function startOwnServers(
  session: Session,
  dataDir: DataDirectory,
  { env, shards, say }: StackOptions,
): Promise<Servers> {
  const { CLICKHOUSE_DATABASE: database, QUEUE_PREFIX: queuePrefix } = env;
  const count = env.CLICKHOUSE_URL === undefined ? shards : 0;
  const redis = env.REDIS_URL === undefined;
  const servers = await startServers({ dataDir, shards: count, redis, database, queuePrefix, say });
  for (const server of [...servers.shards, ...(redis ? [servers.redis] : [])]) session.add(new Supervised(server, say));
  return servers;
}

/** The variables that lead a process to ClickHouse, as its user; a server that is given has one user, for all. */
export function clickHouseLogins(env: Env, servers: Pick<Servers, 'shards' | 'clickhouse'>) {
  const { CLICKHOUSE_URL: given, CLICKHOUSE_DATABASE } = env;
  const own = servers.shards.length > 1 ? CLUSTER : undefined;
  return (user: keyof Passwords) => ({
    CLICKHOUSE_URL: given ?? servers.shards.map(({ url }) => url).join(','),
    CLICKHOUSE_USER: given === undefined ? user : (env.CLICKHOUSE_USER ?? 'default'),
    CLICKHOUSE_PASSWORD: given === undefined ? servers.clickhouse.passwords[user] : (env.CLICKHOUSE_PASSWORD ?? ''),
    CLICKHOUSE_DATABASE,
    CLICKHOUSE_CLUSTER: given === undefined ? own : env.CLICKHOUSE_CLUSTER,
  });
}

/** The id of the database, with several hosts on the first: it has another on each. */
async function databaseIdOf(options: WarehouseOptions): Promise<string> {
  const warehouse = createWarehouse({ ...options, url: hostsOf(options.url)[0] ?? options.url });
  try {
    return await readDatabaseId(warehouse);
  } finally {
    await warehouse.close();
  }
}

/**
 * An account with a key of each role. They are created once and kept in `file`, for a key's text is shown only at its
 * creation; a new one is made of each that this Redis does not know or that was revoked.
 * @throws StartError
 */
function ensureKeys(redisUrl: string, file: string, now: Date) {
  return checkRedis(redisUrl, async (redis) => {
    const store = new ApiKeyStore(redis);
    const kept = await readPrivateFile(file, keysSchema);
    const ensure = async (name: keyof typeof KEYS) => {
      const key = kept?.[name];
      if (key !== undefined && (await store.authenticate(key, now))) return key;
      return (await store.create({ account: LOCAL_ACCOUNT, role: KEYS[name], clientId: CLIENT_ID }, now)).key;
    };
    const keys = {
      account: LOCAL_ACCOUNT,
      adminKey: await ensure('adminKey'),
      memberKey: await ensure('memberKey'),
      emitterKey: await ensure('emitterKey'),
    };
    if (!isDeepStrictEqual(keys, kept)) await writePrivateFile(file, keys);
    return keys;
  });
}
