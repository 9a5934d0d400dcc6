/** Everything that must hold before the first job is taken. */
import type { PriceBook } from '@meterline/catalog';
import { migrate, registerPriceBook, type Warehouse, type WarehouseOptions } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';

const CONNECT_TIMEOUT_MS = 5_000;

/** A server that cannot be reached when the service starts; the message is all that an operator needs. */
export class StartUpError extends Error {
  override readonly name = 'StartUpError';
}

/** @throws StartUpError, MigrationError */
export async function prepareDatabase(options: WarehouseOptions, log: Logger): Promise<void> {
  const applied = await reachable('ClickHouse', options.url, () => migrate(options));
  if (applied.length > 0) log.info({ event: 'migrated', migrations: applied }, 'The database schema is up to date');
}

/** @throws StartUpError, PriceBookConflictError */
export async function preparePriceBook(warehouse: Warehouse, url: string, book: PriceBook): Promise<void> {
  await reachable('ClickHouse', url, () => registerPriceBook(warehouse, book));
}

/** @throws StartUpError */
export async function checkRedis(url: string): Promise<void> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: () => null,
  });
  // Why a connection failed is told here; connect() rejects with no more than that there is none.
  let reason: unknown;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await reachable('Redis', url, async () => {
      try {
        await redis.connect();
        await redis.ping();
      } catch (error) {
        throw reason ?? error;
      }
    });
  } finally {
    redis.disconnect();
  }
}

/** @throws StartUpError when the port cannot be listened on */
export async function listening<T>(port: number, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen();
  } catch (error) {
    throw new StartUpError(`port ${port} cannot be used: ${reasonOf(error)}`, { cause: error });
  }
}

/** Errors with a name of their own explain themselves; the others come from the network or the server. */
async function reachable<T>(server: string, url: string, attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    if (error instanceof Error && EXPLAINED.has(error.name)) throw error;
    throw new StartUpError(`${server} at ${withoutCredentials(url)} cannot be used: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

const EXPLAINED: ReadonlySet<string> = new Set(['MigrationError', 'PriceBookConflictError']);

function withoutCredentials(url: string): string {
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`;
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error instanceof Error ? error.message.split('\n')[0] || error.name : String(error);
}
