/** Connects to everything the API needs, in the order in which a missing piece is easiest to understand. */
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import {
  connectRedis,
  prepareClickHouse,
  type Service,
  STOP_DEADLINE_MS,
  startError,
  warehouseOptions,
} from '@meterline/service';
import { createWarehouse } from '@meterline/warehouse';
import type { Logger } from 'pino';
import { createApp } from './app.js';
import { createTokenVerifier } from './auth/token-verifier.js';
import type { Env } from './env.js';
import { createSealReader, readNothingSealed } from './metrics/seal-reader.js';
import { createRedis, logOutages } from './redis-connection.js';
import { type RunningServer, startServer } from './server.js';

/** @throws StartError */
export async function startService(env: Env, log: Logger): Promise<Service> {
  const clock = () => new Date();
  const storage = warehouseOptions(env, 'meterline-query');
  await prepareClickHouse(storage, log);
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
      readSealed: env.METRICS_SOURCE === 'events' ? readNothingSealed : createSealReader(warehouse, clock),
      maxStoredGroups: env.MAX_STORED_GROUPS,
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
    log.info({ event: 'started', port: server.port }, 'listening');
    return {
      stop: async () => {
        await server.close(STOP_DEADLINE_MS);
        await disconnect();
      },
    };
  } catch (error) {
    await disconnect();
    throw error;
  }
}

async function listen(app: ReturnType<typeof createApp>, port: number): Promise<RunningServer> {
  try {
    return await startServer(app, port);
  } catch (error) {
    throw startError(`cannot listen on port ${port}; free it or set PORT to another`, error);
  }
}
