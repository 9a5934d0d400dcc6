/** Starts the service: connects to the servers behind it, builds the API and listens. Whatever is missing is reported by name. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AccountDirectory, ApiKeyStore, type OnMalformedKey, REDIS_PREFIX } from '@meterline/access';
import {
  type AdminServer,
  connectRedis,
  isRedisFull,
  listenError,
  onceAMinute,
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
import { Admission } from './admission/admission.js';
import { admissionLimits, statementLimits } from './admission/limits.js';
import { refusalCounter, slotGauges } from './admission/metrics.js';
import { SharedLimits } from './admission/shared-limits.js';
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
  const warehouse = createWarehouse({ ...storage, ...statementLimits(env) });
  const redis = createRedis(env.REDIS_URL);
  const disconnect = async () => {
    redis.disconnect();
    await warehouse.close();
  };
  let isStopping = false;
  try {
    await connectRedis(redis, env.REDIS_URL);
    watchOutages(redis, log);
    outageGauge(registry, {
      // Not a statement, which would be counted and traced at every scrape.
      ClickHouse: () => warehouse.ping(),
      Redis: () => redis.ping().then(() => true),
    });
    const accounts = new AccountDirectory(redis, REDIS_PREFIX);
    const limits = admissionLimits(env);
    const shared = new SharedLimits(redis, REDIS_PREFIX, limits);
    const observeRefusal = refusalCounter(registry);
    const admission = new Admission({ limits, shared, warehouse, observeRefusal });
    slotGauges(registry, admission.slots);
    const app = createApp({
      warehouse,
      readSealed: env.METRICS_SOURCE === 'events' ? readNothingSealed : createSealReader(warehouse, clock),
      maxStoredGroups: env.MAX_STORED_GROUPS,
      admission,
      maxUnsentBytes: env.MAX_UNSENT_BYTES,
      accounts,
      keys: new ApiKeyStore(redis, accounts, REDIS_PREFIX, onceAMinute(logMalformedKey(log))),
      tokens: env.tokens && createTokenVerifier({ ...env.tokens, keptMs: env.AUTH_JWKS_KEPT_MS, clock, log }),
      protectedResource: env.tokens && { issuer: env.tokens.issuer, publicUrl: env.PUBLIC_URL },
      pingRedis: () => redis.ping(),
      isRedisFull: () => isRedisFull(redis),
      isStopping: () => isStopping,
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
        isStopping = true;
        await server.close(STOP_DEADLINE_MS, env.STOP_DELAY_MS);
        await admin?.close();
        await disconnect();
      },
    };
  } catch (error) {
    await disconnect();
    throw error;
  }
}

function logMalformedKey(log: Logger): OnMalformedKey {
  return (keyId, reason) => {
    const message = 'the record of an API key in Redis is malformed; the key is refused. Revoke it and create another';
    log.error({ event: 'api_key_malformed', keyId, reason }, message);
  };
}

/** The page is built separately; without it the API works as usual. */
async function builtPage(log: Logger): Promise<string | undefined> {
  // A build of an earlier release has no manifest, which the reference needs.
  const built = await access(join(PAGE_FOLDER, '.vite', 'manifest.json')).then(
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
