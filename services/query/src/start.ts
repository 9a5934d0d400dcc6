/** Connects to everything the API needs, in the order in which a missing piece is easiest to understand. */
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import { checkConnection, createWarehouse, MigrationError, migrate, type WarehouseOptions } from '@meterline/warehouse';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { createApp } from './app.js';
import { createTokenVerifier } from './auth/token-verifier.js';
import type { Env } from './env.js';
import { createRedis, logOutages } from './redis-connection.js';
import { type RunningServer, startServer } from './server.js';

/** The service cannot start; the message is one line that says what to mend. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

export interface RunningService {
  readonly port: number;
  stop(deadlineMs: number): Promise<void>;
}

/** @throws StartError */
export async function startService(env: Env, log: Logger): Promise<RunningService> {
  const clock = () => new Date();
  const storage = warehouseOptions(env);
  await requireClickHouse(storage);
  await migrateWarehouse(storage);
  const warehouse = createWarehouse(storage);
  const redis = createRedis(env.REDIS_URL);
  const disconnect = async () => {
    redis.disconnect();
    await warehouse.close();
  };
  try {
    await connectRedis(redis, env.REDIS_URL);
    logOutages(redis, log);
    const accounts = new AccountDirectory(redis, REDIS_PREFIX);
    const app = createApp({
      warehouse,
      accounts,
      keys: new ApiKeyStore(redis, accounts, REDIS_PREFIX),
      tokens: env.tokens && createTokenVerifier({ ...env.tokens, clock }),
      pingRedis: () => redis.ping(),
      cursorSecret: env.CURSOR_SECRET,
      clock,
      log,
      corsOrigins: env.CORS_ORIGINS,
      trustProxy: env.TRUST_PROXY,
    });
    const server = await listen(app, env.PORT);
    return {
      port: server.port,
      stop: async (deadlineMs) => {
        await server.close(deadlineMs);
        await disconnect();
      },
    };
  } catch (error) {
    await disconnect();
    throw error;
  }
}

function warehouseOptions(env: Env): WarehouseOptions {
  return {
    url: env.CLICKHOUSE_URL,
    user: env.CLICKHOUSE_USER,
    password: env.CLICKHOUSE_PASSWORD,
    database: env.CLICKHOUSE_DATABASE,
    application: 'meterline-query',
  };
}

/** Our own database may not be there yet; `default` always is. */
async function requireClickHouse(options: WarehouseOptions): Promise<void> {
  const server = createWarehouse({ ...options, database: 'default' });
  try {
    await checkConnection(server);
  } catch (error) {
    throw startError(`ClickHouse at ${hostOf(options.url)} does not answer`, error);
  } finally {
    await server.close();
  }
}

async function migrateWarehouse(options: WarehouseOptions): Promise<void> {
  try {
    await migrate(options);
  } catch (error) {
    if (error instanceof MigrationError) throw new StartError(error.message, { cause: error });
    throw startError(`the schema in ClickHouse at ${hostOf(options.url)} could not be brought up to date`, error);
  }
}

/** `connect` alone would only say that the connection was closed; the error event says why. */
async function connectRedis(redis: Redis, url: string): Promise<void> {
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

async function listen(app: ReturnType<typeof createApp>, port: number): Promise<RunningServer> {
  try {
    return await startServer(app, port);
  } catch (error) {
    throw startError(`cannot listen on port ${port}; free it or set PORT to another`, error);
  }
}

function startError(message: string, cause: unknown): StartError {
  return new StartError(`${message} (${reasonOf(cause)})`, { cause });
}

/** Connecting to a name with several addresses fails with one error for each of them and no message of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replace(/\s+/g, ' ').trim();
}

/** Without the credentials that a URL may hold. */
function hostOf(url: string): string {
  return new URL(url).host;
}
