/** Reaching ClickHouse and Redis when a service starts. */
import { moreTelling, redisFailureKind } from '@meterline/access';
import {
  type ClickHouseFailure,
  checkConnection,
  clickHouseFailureKind,
  createWarehouse,
  MigrationError,
  migrate,
  type WarehouseOptions,
} from '@meterline/warehouse';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { hostOf, StartError, startError } from './start-error.js';

const CLICKHOUSE_FAILURES = {
  refused: 'refuses',
  foreign: 'does not answer as ClickHouse does',
  away: 'does not answer',
} as const satisfies Record<ClickHouseFailure, string>;

/** Checks that ClickHouse answers and brings its schema up to date. @throws StartError */
export async function prepareClickHouse(options: WarehouseOptions, log: Logger): Promise<void> {
  // Our own database may not be there yet; `default` always is.
  const server = createWarehouse({ ...options, database: 'default' });
  try {
    await checkConnection(server);
  } catch (error) {
    throw startError(
      `ClickHouse at ${hostOf(options.url)} ${CLICKHOUSE_FAILURES[clickHouseFailureKind(error)]}`,
      error,
    );
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
    reason = moreTelling(reason, error);
  };
  redis.on('error', remember);
  try {
    await redis.connect();
    await redis.ping();
    // It answers even if the database that the address names could not be selected, and would use the first one.
    if (reason !== undefined) throw reason;
  } catch (error) {
    throw redisError(hostOf(url), reason ?? error);
  } finally {
    redis.off('error', remember);
  }
}

function redisError(host: string, cause: unknown): StartError {
  switch (redisFailureKind(cause)) {
    case 'refused':
      return startError(`Redis at ${host} refuses`, cause);
    case 'foreign':
      return new StartError(`what answers at ${host} is not Redis`, { cause });
    case 'away':
      return startError(`Redis at ${host} does not answer`, cause);
  }
}
