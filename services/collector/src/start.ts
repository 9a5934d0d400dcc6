/** Starts the service: connects to Redis, builds the application and listens. Whatever is missing is reported by name. */
import { fileURLToPath } from 'node:url';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import {
  builtPage,
  createRedis,
  listen,
  logMalformedKey,
  openAdminPort,
  openTokenVerifier,
  RateGate,
  refusalCounter,
  requestMetrics,
  requestSpans,
  SharedLimits,
  watchOutages,
} from '@meterline/api';
import { PriceBookError } from '@meterline/catalog';
import { connectRedis, onceAMinute, type Service, STOP_DEADLINE_MS, StartError } from '@meterline/service';
import { createRegistry, outageGauge } from '@meterline/service/metrics';
import { loadPriceBook } from '@meterline/service/price-book';
import type { Tracing } from '@meterline/service/tracing';
import type { Logger } from 'pino';
import { createApp } from './app.js';
import { BytesUnderWay } from './bytes-under-way.js';
import type { Env } from './env.js';
import type { JobEvents } from './events/check.js';
import { MAX_BODY_BYTES, MAX_EVENTS } from './events/limits.js';
import { bytesGauge, createEventMetrics } from './metrics.js';
import { Gathering } from './queue/gathering.js';
import { QueueShards } from './queue/queue-shards.js';

/** The same in the repository and in the image, from the build of this file. */
const PAGE_FOLDER = fileURLToPath(new URL('../../../packages/dashboard/dist/page', import.meta.url));
/** Limits are counted apart from those of the query service. */
const LIMITS_PREFIX = `${REDIS_PREFIX}:collector`;

/** @throws StartError */
export async function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const clock = () => new Date();
  const registry = createRegistry('collector');
  const book = await loadPriceBook(env.PRICE_BOOK).catch((error: unknown) => {
    throw error instanceof PriceBookError ? new StartError(error.message, { cause: error }) : error;
  });
  const redis = createRedis(env.REDIS_URL);
  let queues: QueueShards | undefined;
  const disconnect = () => {
    redis.disconnect();
    queues?.disconnect();
  };
  let isStopping = false;
  try {
    await connectRedis(redis, env.REDIS_URL);
    const accounts = new AccountDirectory(redis, REDIS_PREFIX);
    const keys = new ApiKeyStore(redis, accounts, REDIS_PREFIX, onceAMinute(logMalformedKey(log)));
    watchOutages(redis, log, 'requests get 503 until it does');
    outageGauge(registry, { Redis: () => keys.ping().then(() => true) });
    const shards = await QueueShards.open({
      redisUrl: env.REDIS_URL,
      prefix: env.QUEUE_PREFIX,
      shards: env.QUEUE_SHARDS,
      isAssumed: env.REDIS_DURABILITY === 'assumed',
      writeMs: env.COLLECTOR_WRITE_MS,
      telemetry: tracing.queueTelemetry,
      log,
    });
    queues = shards;

    const metrics = createEventMetrics(registry);
    const write = async (events: JobEvents) => {
      const end = metrics.write(events.count);
      try {
        await shards.add(events);
        end('ok');
      } catch (error) {
        end('failed');
        throw error;
      }
    };
    const gathering = new Gathering({
      write,
      holdMs: env.COLLECTOR_HOLD_MS,
      maxEvents: MAX_EVENTS,
      maxBytes: MAX_BODY_BYTES,
    });
    const bytes = new BytesUnderWay(env.COLLECTOR_MAX_BYTES);
    bytesGauge(registry, bytes);
    const limits = {
      accountRate: { perSecond: env.COLLECTOR_ACCOUNT_RATE, burst: env.COLLECTOR_ACCOUNT_BURST },
      callerRate: { perSecond: env.COLLECTOR_CALLER_RATE, burst: env.COLLECTOR_CALLER_BURST },
    };
    const shared = new SharedLimits(redis, LIMITS_PREFIX, limits);
    const app = createApp({
      gate: new RateGate({ limits, shared, observeRefusal: refusalCounter(registry) }),
      keys,
      tokens: await openTokenVerifier(env, clock, log),
      protectedResource: env.tokens && { issuer: env.tokens.issuer, publicUrl: env.PUBLIC_URL },
      checks: [{ server: 'Redis', check: () => keys.ping().then(() => shards.require()), limit: () => shards.limit() }],
      store: (events, size) => gathering.add(events, size),
      book,
      bytes,
      metrics,
      isStopping: () => isStopping,
      clock,
      log,
      corsOrigins: env.CORS_ORIGINS,
      trustProxy: env.TRUST_PROXY,
      pageFolder: await builtPage(PAGE_FOLDER, log),
      watchers: [requestMetrics(registry), ...(tracing.isOn ? [requestSpans(tracing.tracer)] : [])],
    });
    const server = await listen(app, env, log);
    // Last: who asks there learns that it was this process that got the port.
    const admin = await openAdminPort(env, registry, log);
    log.info({ event: 'started', port: server.port, adminPort: admin?.port, priceBook: book.version }, 'listening');
    return {
      stop: async () => {
        isStopping = true;
        await server.close(STOP_DEADLINE_MS, env.STOP_DELAY_MS);
        await admin?.close();
        disconnect();
      },
    };
  } catch (error) {
    disconnect();
    throw error;
  }
}
