/** The product as tests start it: a database and a queue of their own, keys, and services as processes. */
import { QUEUE_NAME } from '@meterline/catalog';
import { CLUSTER, type RunningClickHouse } from '@meterline/local-stack';
import { ApiKeyStore, type KeyRole } from '@meterline/service/access';
import {
  createWarehouse,
  migrate,
  oneServer,
  openShards,
  type Shards,
  type Warehouse,
  type WarehouseOptions,
} from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { drained, enqueueData } from './queue.js';
import {
  type HttpProcess,
  killServices,
  type ServiceEnvironment,
  type ServiceProcess,
  startAlerts,
  startCollector,
  startIngest,
  startQuery,
} from './services.js';
import { createTestDatabase, databaseVariables, testRedisUrl, uniquePrefix } from './stack.js';

/** Servers that a test owns, so that it may break them. Default: those that all test files share. */
export interface OwnServers {
  readonly redisUrl?: string | undefined;
  /** The queue's; a user of Redis with few rights knows no other than `bull`. */
  readonly prefix?: string;
  /** One server, or all servers of a cluster. */
  readonly clickhouse?: RunningClickHouse | readonly RunningClickHouse[];
  /** The options of the database on these servers. Default: `meterline`. */
  readonly database?: Pick<WarehouseOptions, 'requestTimeoutMs'> & { readonly database: string };
}

/** What there is without ClickHouse. */
export interface Intake {
  readonly queue: Queue;
  readonly redis: Redis;
  readonly keys: ApiKeyStore;
  /** The environment of a service. */
  readonly env: ServiceEnvironment;
  /** The text of a new key. */
  key(account: string | undefined, role?: KeyRole, clientId?: string): Promise<string>;
  /** @param env added to the product's, as for the other services */
  startCollector(env?: ServiceEnvironment): Promise<HttpProcess>;
  /** Ends all services that take from its queue or add to it. */
  close(): Promise<void>;
}

export interface Product extends Intake {
  readonly warehouse: Warehouse;
  readonly shards: Shards;
  startIngest(env?: ServiceEnvironment): Promise<ServiceProcess>;
  startQuery(env?: ServiceEnvironment): Promise<HttpProcess>;
  startAlerts(env?: ServiceEnvironment): Promise<ServiceProcess>;
  /** One job with these events. @returns its id, when all jobs are acknowledged */
  send(...events: readonly unknown[]): Promise<string>;
}

export function openIntake({ redisUrl, prefix = uniquePrefix() }: OwnServers = {}): Intake {
  const url = redisUrl ?? testRedisUrl();
  const queue = new Queue(QUEUE_NAME, { connection: { url, maxRetriesPerRequest: null }, prefix });
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: null });
  // A test may kill Redis.
  for (const client of [queue, redis]) client.on('error', () => undefined);
  const keys = new ApiKeyStore(redis);
  const env = { REDIS_URL: url, QUEUE_PREFIX: prefix };
  return {
    queue,
    redis,
    keys,
    env,
    key: async (account, role = 'admin', clientId = `${role} of ${account}`) =>
      (await keys.create({ account, role, clientId }, new Date())).key,
    startCollector: (more) => startCollector({ ...env, ...more }),
    close: async () => {
      await killServices(prefix);
      if (redisUrl === undefined) await queue.obliterate({ force: true });
      // BullMQ would wait for ever for the end of a connection to a Redis that a test has killed.
      if (redisUrl === undefined) await queue.close();
      else void queue.disconnect();
      redis.disconnect();
    },
  };
}

export async function startProduct(own: OwnServers = {}): Promise<Product> {
  const { clickhouse } = own;
  const database = await (clickhouse ? ownDatabase(clickhouse, own.database) : createTestDatabase());
  const intake = openIntake(own);
  const env = {
    ...intake.env,
    ...databaseVariables(database.options),
    CURSOR_SECRET: 'a secret of the tests, 32 characters or more',
  };
  return {
    ...intake,
    env,
    warehouse: database.warehouse,
    shards: database.shards,
    startIngest: (more) => startIngest({ ...env, ...more }),
    startQuery: (more) => startQuery({ ...env, ALERT_ALLOWED_HOSTS: '127.0.0.1', ...more }),
    startAlerts: (more) => startAlerts({ ...env, ...more }),
    send: async (...events) => {
      const id = await enqueueData(intake.queue, { events });
      await drained(intake.queue);
      return id;
    },
    close: async () => {
      await intake.close();
      await database.drop();
    },
  };
}

/** The worker makes the schema of one server, a user for that the schema of a cluster. Both are deleted with their servers. */
async function ownDatabase(
  clickhouse: RunningClickHouse | readonly RunningClickHouse[],
  database: OwnServers['database'] = { database: 'meterline' },
) {
  const servers = [clickhouse].flat();
  const [first] = servers;
  if (!first) throw new Error('a cluster has servers');
  const { user, password, passwords } = first;
  const url = servers.map((server) => server.url).join(',');
  const options: WarehouseOptions = { url, user, password, application: 'meterline-test', ...database };
  if (servers.length === 1) {
    const warehouse = createWarehouse(options);
    return { options, warehouse, shards: oneServer(warehouse), drop: () => warehouse.close() };
  }
  const ofCluster = { ...options, cluster: { name: CLUSTER, insertQuorum: undefined } };
  await migrate({ ...ofCluster, user: 'migrate', password: passwords.migrate });
  const shards = await openShards(ofCluster);
  return { options: ofCluster, warehouse: shards.whole, shards, drop: () => shards.close() };
}
