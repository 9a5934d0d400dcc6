/** Reaching ClickHouse and Redis when a service starts. */
import { checkConnection, createWarehouse, MigrationError, migrate, type WarehouseOptions } from '@meterline/warehouse';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { hostOf, StartError, startError } from './start-error.js';

/** Checks that ClickHouse answers and brings its schema up to date. @throws StartError */
export async function prepareClickHouse(options: WarehouseOptions, log: Logger): Promise<void> {
  // Our own database may not be there yet; `default` always is.
  const server = createWarehouse({ ...options, database: 'default' });
  try {
    await checkConnection(server);
  } catch (error) {
    throw startError(`ClickHouse at ${hostOf(options.url)} does not answer`, error);
  } finally {
    await server.close();
  }
  try {
    const migrations = await migrate(options);
    if (migrations.length > 0) log.info({ event: 'migrated', migrations }, 'the database schema is up to date');
  } catch (error) {
    if (error instanceof MigrationError) throw new StartError(error.message, { cause: error });
    throw startError(`the schema in ClickHouse at ${hostOf(options.url)} could not be brought up to date`, error);
  }
}

/**
 * Connects a lazy connection and asks for an answer.
 * @throws StartError, with the reason of the error event: `connect` alone would only say that the connection was closed
 */
export async function connectRedis(redis: Redis, url: string): Promise<void> {
  let reason: unknown;
  const remember = (error: unknown) => {
    reason ??= error;
  };
  redis.on('error', remember);
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    throw startError(`Redis at ${hostOf(url)} does not answer`, reason ?? error);
  } finally {
    redis.off('error', remember);
  }
}
