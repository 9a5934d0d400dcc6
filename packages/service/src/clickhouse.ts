/** Connects to ClickHouse at start. index.ts does not export this file, so that the collector loads no ClickHouse libraries. */
import { addedDimensions } from '@meterline/catalog';
import {
  CatalogConflictError,
  ClusterError,
  checkCluster,
  checkDimensions,
  checkServers,
  clickHouseFailureKind,
  createWarehouse,
  hostsOf,
  MigrationError,
  migrate,
  openShards,
  registerDimensions,
  type Warehouse,
  type WarehouseOptions,
} from '@meterline/warehouse';
import type { Logger } from 'pino';
import { StartError, startError } from './start-error.js';

const CLICKHOUSE_FAILURES = {
  rejected: 'returned an error',
  unfit: 'cannot be used',
  foreign: 'does not respond like ClickHouse',
  away: 'does not respond',
  defect: 'could not be used because of a bug',
} as const satisfies Record<ReturnType<typeof clickHouseFailureKind>, string>;

/** Migrates the schema of ClickHouse. In a cluster, hosts that are down are skipped, because each outage affects only the accounts of that host. */
export async function prepareClickHouse(options: WarehouseOptions, log: Logger): Promise<void> {
  try {
    await checkServers(options);
  } catch (error) {
    throw startError(
      `ClickHouse at ${hostOf(options.url)} ${CLICKHOUSE_FAILURES[clickHouseFailureKind(error)]}`,
      error,
    );
  }
  const present = { ...options, url: await presentHosts(options, log) };
  try {
    const migrations = await migrate(present);
    if (migrations.length > 0) log.info({ event: 'migrated', migrations }, 'the database schema is up to date');
    await checkCluster(present);
  } catch (error) {
    if (error instanceof MigrationError || error instanceof ClusterError) {
      throw new StartError(error.message, { cause: error });
    }
    throw startError(`the schema in ClickHouse at ${hostOf(options.url)} could not be migrated`, error);
  }
}

/** Stores the catalog file's dimensions in ClickHouse. Opens the shards only for a new dimension, so that query starts while a shard is down. */
export async function registerCatalog(options: WarehouseOptions, warehouse: Warehouse): Promise<void> {
  try {
    const missing = await checkDimensions(warehouse, addedDimensions());
    if (missing.length === 0) return;
    const shards = await openShards(options).catch(unlessUnreachable);
    try {
      if (shards) await registerDimensions(shards, addedDimensions());
    } finally {
      await shards?.close();
    }
  } catch (error) {
    if (error instanceof CatalogConflictError) throw new StartError(error.message, { cause: error });
    throw startError('the dimensions of the catalog could not be registered in ClickHouse', error);
  }
}

/** Ignores shards that cannot be reached: the query service may use a load balancer in front of them. Then only workers store dimensions. */
function unlessUnreachable(error: unknown): undefined {
  if (!(error instanceof ClusterError)) throw error;
}

async function presentHosts(options: WarehouseOptions, log: Logger): Promise<string> {
  const hosts = hostsOf(options.url);
  if (hosts.length === 1) return options.url;
  const responses = await Promise.all(hosts.map((url) => respondsToPing({ ...options, url })));
  const away = hosts.filter((_, index) => !responses[index]);
  if (away.length > 0) {
    log.warn(
      { event: 'hosts_away', hosts: away.map(hostOf) },
      'some ClickHouse hosts do not respond; their schema is not checked',
    );
  }
  return hosts.filter((_, index) => responses[index]).join(',');
}

async function respondsToPing(options: WarehouseOptions): Promise<boolean> {
  const host = createWarehouse(options);
  try {
    return await host.ping();
  } finally {
    await host.close();
  }
}

/** Returns the hosts without the credentials that a URL may contain. @param urls one URL, or several URLs separated by commas */
function hostOf(urls: string): string {
  return hostsOf(urls)
    .map((url) => new URL(url).host)
    .join(', ');
}
