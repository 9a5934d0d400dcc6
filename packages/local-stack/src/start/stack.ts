/** Starts servers, services and the demo in the order of their dependencies. Starts independent parts concurrently. */
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
import type { RedisUser } from '../redis.js';
import { type Servers, startServers } from '../servers.js';
import { choosePort, type ServiceOptions, Supervised, startService, urlAt } from './services.js';
import type { CommandLine, Env } from './settings.js';

const LOCAL_ACCOUNT = 'demo';
const CLIENT_ID = 'local-stack';

/** Names of the keys in `local.json`, each with its role. */
const KEYS = { adminKey: 'admin', memberKey: 'member', emitterKey: 'emitter' } as const;

const keysSchema = z
  .object({ account: z.string(), adminKey: z.string(), memberKey: z.string(), emitterKey: z.string() })
  .partial();

/** Hosts of this machine, which webhooks may use even without TLS. */
export const LOCAL_HOSTS = '127.0.0.1,localhost,[::1]';

export type RunningStack = Awaited<ReturnType<typeof startStack>>;

export interface StackOptions extends Omit<CommandLine, 'help'> {
  readonly env: Env;
  readonly say: (line: string) => void;
  readonly stop: AbortSignal;
}

export class Session {
  readonly #parts: { stop(): Promise<void> }[] = [];

  add(part: { stop(): Promise<void> }): void {
    this.#parts.push(part);
  }

  /** Stops all parts, even if some of them fail to stop. @throws the first failure */
  async stop(): Promise<void> {
    const failures: unknown[] = [];
    for (let part = this.#parts.pop(); part; part = this.#parts.pop()) {
      await part.stop().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }
}

/**
 * Starts the stack. Adds each part to the session as soon as it runs, so that stopping the session cleans up a failed start.
 * @throws LocalStackError, MigrationError, StartError, or the reason of `stop`
 */
export async function startStack(session: Session, options: StackOptions) {
  const { env, say, stop } = options;
  const directory = await DataDirectory.open(env.METERLINE_DATA_DIR);
  session.add({ stop: async () => directory.close() });
  const localFile = directory.file('local.json');
  // Remove the file of an earlier stack. A stack that was killed leaves this file with outdated addresses.
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

  const CURSOR_SECRET = env.CURSOR_SECRET ?? passwordOf(directory.secret, 'cursors');
  // Allow webhooks to this machine, because a developer runs webhook receivers on it.
  const webhooks = { ALERT_ALLOWED_HOSTS: LOCAL_HOSTS };
  const own = { COLLECTOR_URL: collectorUrl, CURSOR_SECRET, ...webhooks };
  const services: readonly Omit<ServiceOptions, 'adminPort'>[] = [
    { name: 'ingest', env: { ...clickhouse('ingest'), ...redis('worker') } },
    { name: 'query', env: { ...clickhouse('query'), ...redis('query'), ...own }, port },
    { name: 'collector', env: redis('collector'), port: collectorPort },
    { name: 'alerts', env: { ...clickhouse('query'), ...redis('alerts'), ...webhooks } },
  ];
  const starts = services.map(async ({ name, ...service }, index) => {
    // Prefer fixed ports (the API's port + 2 and so on), so that a Prometheus configuration stays valid after a restart.
    const adminPort = await choosePort(`the admin server of ${name}`, undefined, port + 2 + index, say, collectorPort);
    const options = { ...service, name, adminPort, env: { ...env.inherited, ...service.env } };
    session.add(new Supervised(await startService(options, directory), say));
    return `${urlAt(adminPort)}/metrics (${name})`;
  });
  // Wait for all starts, even if one of them fails, so that the session can stop every service that has started.
  await Promise.allSettled(starts);
  const metricsUrls = await Promise.all(starts);
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

  const { CLICKHOUSE_URL: hosts, CLICKHOUSE_CLUSTER: cluster, ...owner } = clickhouse(OWNER);
  const addresses = {
    apiUrl: urlAt(port),
    collectorUrl,
    redisUrl: redis('admin').REDIS_URL,
    clickhouseUrl: hostsOf(hosts)[0] ?? hosts,
    // `clickhouseHosts` has the addresses of all shards, separated by commas. `clickhouseUrl` is the first one, which can query all shards.
    ...(cluster !== undefined && { clickhouseHosts: hosts, clickhouseCluster: cluster }),
    clickhouseUser: owner.CLICKHOUSE_USER,
    clickhousePassword: owner.CLICKHOUSE_PASSWORD,
    clickhouseDatabase: owner.CLICKHOUSE_DATABASE,
    ...keys,
  };
  await writePrivateFile(localFile, addresses);
  session.add({ stop: () => rm(localFile, { force: true }) });
  return { addresses, metricsUrls };
}

/** Starts ClickHouse and Redis, each only if no environment variable has the address of another server. */
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

/** Returns a function that creates the ClickHouse variables of a process. With an external server, all processes use the same user. */
export function clickHouseLogins(env: Env, servers: Pick<Servers, 'shards' | 'clickhouse'>) {
  const { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE } = env;
  const cluster = servers.shards.length > 1 ? CLUSTER : undefined;
  return (user: keyof Passwords) => ({
    CLICKHOUSE_URL: url ?? servers.shards.map(({ url }) => url).join(','),
    CLICKHOUSE_USER: url === undefined ? user : (env.CLICKHOUSE_USER ?? 'default'),
    CLICKHOUSE_PASSWORD: url === undefined ? servers.clickhouse.passwords[user] : (env.CLICKHOUSE_PASSWORD ?? ''),
    CLICKHOUSE_DATABASE,
    CLICKHOUSE_CLUSTER: url === undefined ? cluster : env.CLICKHOUSE_CLUSTER,
  });
}

/** Returns the database ID of the first host, because each host has a different ID. */
async function databaseIdOf(options: WarehouseOptions): Promise<string> {
  const warehouse = createWarehouse({ ...options, url: hostsOf(options.url)[0] ?? options.url });
  try {
    return await readDatabaseId(warehouse);
  } finally {
    await warehouse.close();
  }
}

/** Creates an account and its keys. Saves the keys in `file`, because Redis cannot return them later. Replaces keys that are not valid. */
function ensureKeys(redisUrl: string, file: string, now: Date) {
  return checkRedis(redisUrl, async (redis) => {
    const store = new ApiKeyStore(redis);
    const saved = await readPrivateFile(file, keysSchema);
    const ensure = async (name: keyof typeof KEYS) => {
      const key = saved?.[name];
      if (key !== undefined && (await store.authenticate(key, now))) return key;
      return (await store.create({ account: LOCAL_ACCOUNT, role: KEYS[name], clientId: CLIENT_ID }, now)).key;
    };
    const keys = {
      account: LOCAL_ACCOUNT,
      adminKey: await ensure('adminKey'),
      memberKey: await ensure('memberKey'),
      emitterKey: await ensure('emitterKey'),
    };
    if (!isDeepStrictEqual(keys, saved)) await writePrivateFile(file, keys);
    return keys;
  });
}
