/** Starts the service: connects to the servers behind it, builds the API and listens. Whatever is missing is reported by name. */
import { fileURLToPath } from 'node:url';
import {
  builtPage,
  createRedis,
  createTokenVerifier,
  listen,
  logMalformedKey,
  openAdminPort,
  RateLimiter,
  rateLimits,
  refusalCounter,
  requestMetrics,
  requestSpans,
  watchOutages,
} from '@meterline/api';
import {
  connectRedis,
  isRedisFull,
  onceAMinute,
  type Service,
  STOP_DEADLINE_MS,
  warehouseOptions,
} from '@meterline/service';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/service/access';
import { AlertStore } from '@meterline/service/alerts';
import { prepareClickHouse } from '@meterline/service/clickhouse';
import { createRegistry, outageGauge, statementMetrics } from '@meterline/service/metrics';
import { eachObserver, statementSpans, type Tracing } from '@meterline/service/tracing';
import { createWarehouse, type WarehouseOptions } from '@meterline/warehouse';
import type { Logger } from 'pino';
import { Admission, type AdmissionLimits, permitGauges } from './admission/admission.js';
import { createApp } from './app.js';
import type { Env } from './env.js';
import { measuredCache } from './metrics/response-cache.js';
import { rollupStateReader } from './metrics/rollup-state.js';
import { StoredGroups } from './metrics/stored-groups.js';

/** The same in the repository and in the image, from the build of this file. */
const PAGE_FOLDER = fileURLToPath(new URL('../../../packages/dashboard/dist/page', import.meta.url));

/** @throws StartError */
export async function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const { METERLINE_CONSTANTS: constants } = env;
  const clock = () => new Date();
  const registry = createRegistry('query');
  const observe = eachObserver(statementMetrics(registry), statementSpans(tracing.tracer));
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
    const accounts = new AccountDirectory(redis, REDIS_PREFIX);
    const keys = new ApiKeyStore(redis, accounts, REDIS_PREFIX, onceAMinute(logMalformedKey(log)));
    watchOutages(redis, log, 'requests with an API key get 503 until it does');
    outageGauge(registry, {
      // Not a statement, which would be counted and traced at every scrape.
      ClickHouse: () => warehouse.ping(),
      Redis: () => keys.ping().then(() => true),
    });
    const observeRefusal = refusalCounter(registry);
    const rates = new RateLimiter({ redis, prefix: REDIS_PREFIX, limits: rateLimits(env), observeRefusal });
    const admission = new Admission({ limits: admissionLimits(env), rates, warehouse, observeRefusal });
    permitGauges(registry, admission);
    const app = createApp({
      warehouse,
      readRollupState: rollupStateReader(constants.eventsOnly > 0),
      cache: measuredCache(registry, constants.cacheBytes),
      storedGroups: new StoredGroups(redis, REDIS_PREFIX, constants.maxStoredGroups),
      admission,
      maxUnsentBytes: constants.maxUnsentBytes,
      accounts,
      alerts: new AlertStore(redis, REDIS_PREFIX),
      allowedHosts: env.ALERT_ALLOWED_HOSTS,
      keys,
      tokens: env.tokens && createTokenVerifier({ ...env.tokens, clock, log }),
      protectedResource: env.tokens && { issuer: env.tokens.issuer, publicUrl: env.PUBLIC_URL },
      pingRedis: () => keys.ping(),
      isRedisFull: () => isRedisFull(redis),
      isStopping: () => isStopping,
      cursorSecret: env.CURSOR_SECRET,
      collectorUrl: env.COLLECTOR_URL,
      frameAncestors: env.FRAME_ANCESTORS,
      clock,
      log,
      corsOrigins: env.CORS_ORIGINS,
      trustProxy: env.TRUST_PROXY,
      pageFolder: await builtPage(PAGE_FOLDER, log),
      watchers: [requestMetrics(registry), requestSpans(tracing.tracer)],
    });
    const server = await listen(app, env, log);
    // Last: who asks there learns that it was this process that got the port.
    const admin = await openAdminPort(env, registry, log);
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

/** Requests of all accounts together that may wait, in requests of one. */
const ACCOUNTS_WAITING = 10;

/** How they were chosen: docs/operations.md, "Many tenants". */
function admissionLimits({ METERLINE_CONSTANTS: constants }: Env): AdmissionLimits {
  return {
    process: constants.statements,
    account: constants.accountStatements,
    caller: constants.callerStatements,
    maxWaitMs: constants.maxWaitMs,
    maxWaitingOfAccount: constants.maxWaiting,
    maxWaiting: ACCOUNTS_WAITING * constants.maxWaiting,
  };
}

/** A connection for each statement at once, and a bound on each of them. */
function statementLimits(env: Env): Pick<WarehouseOptions, 'maxConnections' | 'maxExecutionMs' | 'maxMemoryBytes'> {
  return {
    maxConnections: env.METERLINE_CONSTANTS.statements,
    maxExecutionMs: env.METERLINE_CONSTANTS.statementMs,
    maxMemoryBytes: env.STATEMENT_MB * 2 ** 20,
  };
}
