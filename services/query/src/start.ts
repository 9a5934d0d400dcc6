/** Starts the service: connects to the servers behind it, builds the API and listens. Whatever is missing is reported by name. */
import { fileURLToPath } from 'node:url';
import { AccountDirectory, AnswerStamps, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import {
  builtPage,
  createRedis,
  listen,
  logMalformedKey,
  openAdminPort,
  openTokenVerifier,
  refusalCounter,
  requestMetrics,
  requestSpans,
  SharedLimits,
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
import { prepareClickHouse } from '@meterline/service/clickhouse';
import { createRegistry, outageGauge, StatementMetrics } from '@meterline/service/metrics';
import { eachObserver, statementSpans, type Tracing } from '@meterline/service/tracing';
import { createWarehouse } from '@meterline/warehouse';
import type { Logger } from 'pino';
import { Admission } from './admission/admission.js';
import { admissionLimits, statementLimits } from './admission/limits.js';
import { slotGauges } from './admission/metrics.js';
import { createApp } from './app.js';
import type { Env } from './env.js';
import { observedAnswers } from './metrics/answer-metrics.js';
import { createCellsReader, createEventsReader } from './metrics/readable-cells.js';

/** The same in the repository and in the image, from the build of this file. */
const PAGE_FOLDER = fileURLToPath(new URL('../../../packages/dashboard/dist/page', import.meta.url));

/** @throws StartError */
export async function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const clock = () => new Date();
  const registry = createRegistry('query');
  const observe = eachObserver(new StatementMetrics(registry).observe, statementSpans(tracing.tracer));
  const storage = { ...warehouseOptions(env, 'meterline-query'), observe };
  const shards = await prepareClickHouse(storage, log);
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
    const limits = admissionLimits(env);
    const shared = new SharedLimits(redis, REDIS_PREFIX, limits);
    const observeRefusal = refusalCounter(registry);
    const admission = new Admission({ limits, shared, warehouse, observeRefusal });
    slotGauges(registry, admission);
    const app = createApp({
      warehouse,
      readCells:
        env.METRICS_SOURCE === 'events' ? createEventsReader(shards) : createCellsReader(warehouse, clock, shards),
      shards,
      answers: observedAnswers(registry, env.ANSWER_CACHE_BYTES),
      stamps: new AnswerStamps(redis, REDIS_PREFIX),
      maxStoredGroups: env.MAX_STORED_GROUPS,
      admission,
      maxUnsentBytes: env.MAX_UNSENT_BYTES,
      accounts,
      keys,
      tokens: await openTokenVerifier(env, clock, log),
      protectedResource: env.tokens && { issuer: env.tokens.issuer, publicUrl: env.PUBLIC_URL },
      pingRedis: () => keys.ping(),
      isRedisFull: () => isRedisFull(redis),
      isStopping: () => isStopping,
      cursorSecret: env.CURSOR_SECRET,
      collectorUrl: env.COLLECTOR_URL,
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
