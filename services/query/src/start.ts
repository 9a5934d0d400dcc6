/** Starts the service: connects to the servers behind it, builds the API and listens. Whatever is missing is reported by name. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import {
  type AdminServer,
  connectRedis,
  listenError,
  openAdminServer,
  prepareClickHouse,
  type Service,
  STOP_DEADLINE_MS,
  warehouseOptions,
} from '@meterline/service';
import { createRegistry, outageGauge, StatementMetrics } from '@meterline/service/metrics';
import { eachObserver, statementSpans, type Tracing } from '@meterline/service/tracing';
import { createWarehouse } from '@meterline/warehouse';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { createApp } from './app.js';
import { createTokenVerifier } from './auth/token-verifier.js';
import type { Env } from './env.js';
import { requestMetrics, requestSpans } from './http/request-observation.js';
import { createSealReader, readNothingSealed } from './metrics/pages.js';
import { createRedis, watchOutages } from './redis-connection.js';
import { type RunningServer, startServer } from './server.js';

/** The same in the repository and in the image, from the build of this file. */
const PAGE_FOLDER = fileURLToPath(new URL('../../../packages/dashboard/dist/page', import.meta.url));

/** @throws StartError */
export async function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const clock = () => new Date();
  const registry = createRegistry('query');
  const observe = eachObserver(new StatementMetrics(registry).observe, statementSpans(tracing.tracer));
  const storage = { ...warehouseOptions(env, 'meterline-query'), observe };
  await prepareClickHouse(storage, log);
  const warehouse = createWarehouse(storage);
  const redis = createRedis(env.REDIS_URL);
  const disconnect = async () => {
    redis.disconnect();
    await warehouse.close();
  };
  try {
    await connectRedis(redis, env.REDIS_URL);
    watchOutages(redis, log);
    outageGauge(registry, {
      // Not a statement, which would be counted and traced at every scrape.
      ClickHouse: () => warehouse.ping(),
      Redis: () => redis.ping().then(() => true),
    });
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
      pageFolder: await builtPage(log),
      watchers: [requestMetrics(registry), requestSpans(tracing.tracer)],
    });
    const admin = await openAdminPort(env, registry, log);
    const server = await listen(app, env, log);
    log.info({ event: 'started', port: server.port, adminPort: admin?.port }, 'listening');
    return {
      stop: async () => {
        await server.close(STOP_DEADLINE_MS);
        await admin?.close();
        await disconnect();
      },
    };
  } catch (error) {
    await disconnect();
    throw error;
  }
}

/** The page is built separately; without it the API works as usual. */
async function builtPage(log: Logger): Promise<string | undefined> {
  const built = await access(join(PAGE_FOLDER, 'index.html')).then(
    () => true,
    () => false,
  );
  if (built) return PAGE_FOLDER;
  log.warn({ event: 'page_missing', folder: PAGE_FOLDER }, 'the web page is not built; only the API answers');
  return undefined;
}

/** @throws StartError when the port is in use */
async function openAdminPort(env: Env, registry: Registry, log: Logger): Promise<AdminServer | undefined> {
  if (env.ADMIN_PORT === undefined) return undefined;
  // Healthy means only that it answers; /readyz of the API checks the servers behind it.
  const health = async () => ({ healthy: true, facts: { status: 'ok' } });
  const address = { port: env.ADMIN_PORT, host: env.LISTEN_HOST };
  return openAdminServer(address, { health, metrics: registry }, log);
}

async function listen(
  app: ReturnType<typeof createApp>,
  { LISTEN_HOST, PORT }: Env,
  log: Logger,
): Promise<RunningServer> {
  try {
    return await startServer(app, { port: PORT, host: LISTEN_HOST, log });
  } catch (error) {
    throw listenError({ port: PORT, variable: 'PORT', host: LISTEN_HOST }, error);
  }
}
