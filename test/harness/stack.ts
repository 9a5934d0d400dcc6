/** Each test file's own database and queue, on the servers that the global set-up started. */
import { randomUUID } from 'node:crypto';
import { CLUSTER } from '@meterline/local-stack';
import {
  createWarehouse,
  EventRows,
  hostsOf,
  insertUsageEvents,
  localDatabase,
  markDirtyHours,
  Names,
  oneServer,
  openShards,
  type PricedEvent,
  readBounds,
  recomputeDirtyHours,
  type Shards,
  type Statement,
  type Warehouse,
  type WarehouseOptions,
} from '@meterline/warehouse';
import { z } from 'zod';

export interface TestDatabase {
  readonly options: WarehouseOptions;
  readonly warehouse: Warehouse;
  readonly shards: Shards;
  drop(): Promise<void>;
}

export function testRedisUrl(): string {
  return required('METERLINE_TEST_REDIS_URL');
}

export function testClickHouseUrl(): string {
  return required('METERLINE_TEST_CLICKHOUSE_URL');
}

/** The variables that lead a process to a database. */
export function databaseVariables({ url, user, password, database, cluster }: WarehouseOptions) {
  return {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: database,
    ...(cluster && { CLICKHOUSE_CLUSTER: cluster.name }),
  };
}

/** A prefix that no other test file uses; Redis is shared. */
export function uniquePrefix(): string {
  return `test-${randomUUID()}`;
}

/** Creates a migrated database by copying the template, which takes a sixth of the statements of a migration. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { METERLINE_TEST_BALANCER: balancer } = process.env;
  const options: WarehouseOptions = {
    url: testClickHouseUrl(),
    user: required('METERLINE_TEST_CLICKHOUSE_USER'),
    password: required('METERLINE_TEST_CLICKHOUSE_PASSWORD'),
    database: `test_${randomUUID().replaceAll('-', '')}`,
    cluster: balancer === undefined ? undefined : { name: CLUSTER, insertQuorum: undefined },
    application: 'meterline-test',
  };
  await copyTemplate(options, required('METERLINE_TEST_TEMPLATE'));
  const whole = createWarehouse({ ...options, url: balancer ?? options.url });
  const shards = balancer === undefined ? oneServer(whole) : { ...(await openShards(options)), whole };
  return {
    options,
    warehouse: whole,
    shards,
    drop: async () => {
      await onEachHost(options, async (host) => {
        for (const name of databasesOf(options.database, options)) await execute(host, `DROP DATABASE ${name} SYNC`);
      });
      await whole.close();
      await shards.close();
    },
  };
}

/** The database, and in a cluster the one of the shard's own tables before it. */
function databasesOf(name: string, { cluster }: WarehouseOptions): string[] {
  return cluster ? [localDatabase(name), name] : [name];
}

async function onEachHost(options: WarehouseOptions, work: (host: Warehouse) => Promise<void>): Promise<void> {
  const hosts = hostsOf(options.url).map(async (url) => {
    const host = createWarehouse({ ...options, url, database: 'default' });
    await work(host).finally(() => host.close());
  });
  await Promise.all(hosts);
}

/** Copies the template's tables and the list of its applied migrations. */
async function copyTemplate(options: WarehouseOptions, template: string): Promise<void> {
  const { database } = options;
  const databases = databasesOf(template, options);
  const inCopy = (text: string) => text.replaceAll(template, database);
  const [local = template] = databases;
  await onEachHost(options, async (host) => {
    const [tables] = await Promise.all([
      select<{ create: string; engine: string }>(
        host,
        `SELECT create_table_query AS create, engine FROM system.tables WHERE database IN {databases: Array(String)}`,
        { databases },
      ),
      ...databases.map((name) => execute(host, `CREATE DATABASE ${inCopy(name)}`)),
    ]);
    const copy = (areViews: boolean) =>
      tables.flatMap(({ create, engine }) => ((engine === 'View') === areViews ? [execute(host, inCopy(create))] : []));
    await Promise.all(copy(false));
    // A view needs its table.
    await Promise.all(copy(true));
    await execute(host, `INSERT INTO ${inCopy(local)}.schema_migrations SELECT * FROM ${local}.schema_migrations`);
  });
}

/** Runs a test's own SELECT. @returns the rows unchanged: 64-bit integers and decimals are strings */
export function select<Row = Record<string, unknown>>(
  warehouse: Warehouse,
  query: string,
  query_params: Statement['query_params'] = {},
): Promise<Row[]> {
  return warehouse.read({ name: 'test', query, query_params }, z.custom<Row>());
}

/** Runs a test's own statement that returns no rows. For a mutation, waits until it is done. */
export async function execute(
  warehouse: Warehouse,
  query: string,
  query_params: Statement['query_params'] = {},
): Promise<void> {
  await warehouse.run({ name: 'test', query, query_params, settings: { mutations_sync: '2' } });
}

/** Stores events as an ingest process does, also late ones. Resolves when they may be acknowledged. */
export async function storeEvents(warehouse: Warehouse, events: readonly PricedEvent[]): Promise<void> {
  await insertUsageEvents(warehouse, events);
  const { hourly } = await readBounds(warehouse);
  await markDirtyHours(warehouse, [EventRows.of(events, new Names())], hourly.sealingUntil);
}

/** Recomputes all dirty hours of a shard that are due. */
export async function recomputeAll(shard: Warehouse): Promise<void> {
  while ((await recomputeDirtyHours(shard)).marks > 0);
}

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run the tests with npm test or npm run jest`);
  return value;
}
