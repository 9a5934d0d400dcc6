/** Starts the service: connects to Redis, builds the application and listens. Whatever is missing is reported by name. */

import {
  addErrorResponses,
  addServiceRoutes,
  createApplication,
  createAuthenticate,
  createRedis,
  createTokenVerifier,
  listen,
  logMalformedKey,
  methodNotAllowed,
  openAdminPort,
  RateLimiter,
  rateLimits,
  readSmallBodies,
  refusalCounter,
  requestMetrics,
  requestSpans,
  watchOutages,
} from '@meterline/api';
import { PriceBookError } from '@meterline/catalog';
import {
  connectRedis,
  onceAMinute,
  type Service,
  STOP_DEADLINE_MS,
  StartError,
  warnOfReplicas,
} from '@meterline/service';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/service/access';
import { createRegistry, outageGauge } from '@meterline/service/metrics';
import { loadPriceBook } from '@meterline/service/price-book';
import type { Tracing } from '@meterline/service/tracing';
import type { Logger } from 'pino';
import { ByteBudget } from './byte-budget.js';
import type { Env } from './env.js';
import { MAX_BODY_BYTES, MAX_EVENTS } from './events/limits.js';
import { eventsRoute } from './events/route.js';
import { bytesGauge, createEventMetrics } from './metrics.js';
import { createOpenApiDocument } from './openapi/document.js';
import { MicroBatcher } from './queue/micro-batch.js';
import { UsageQueue } from './queue/usage-queue.js';

/** Limits are counted apart from those of the query service. */
const LIMITS_PREFIX = `${REDIS_PREFIX}:collector`;
const EVENTS = '/v0/accounts/:accountId/events';

/** @throws StartError */
export async function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const { METERLINE_CONSTANTS: constants } = env;
  const clock = () => new Date();
  const registry = createRegistry('collector');
  const book = await loadPriceBook(env.PRICE_BOOK).catch((error: unknown) => {
    throw error instanceof PriceBookError ? new StartError(error.message, { cause: error }) : error;
  });
  const redis = createRedis(env.REDIS_URL);
  let queue: UsageQueue | undefined;
  const disconnect = () => {
    redis.disconnect();
    queue?.disconnect();
  };
  let isStopping = false;
  try {
    await connectRedis(redis, env.REDIS_URL);
    await warnOfReplicas(redis, env.REDIS_URL, log);
    const accounts = new AccountDirectory(redis, REDIS_PREFIX);
    const keys = new ApiKeyStore(redis, accounts, REDIS_PREFIX, onceAMinute(logMalformedKey(log)));
    watchOutages(redis, log, 'requests get 503 until it does');
    outageGauge(registry, { Redis: () => keys.ping().then(() => true) });
    const opened = await UsageQueue.open({
      redisUrl: env.REDIS_URL,
      prefix: env.QUEUE_PREFIX,
      writeMs: constants.writeMs,
      telemetry: tracing.queueTelemetry,
    });
    queue = opened;

    const metrics = createEventMetrics(registry);
    const batcher = new MicroBatcher({
      write: (events) => metrics.write(events.length, opened.add(events)),
      holdMs: constants.holdMs,
      maxEvents: MAX_EVENTS,
      maxBytes: MAX_BODY_BYTES,
    });
    const budget = new ByteBudget(constants.maxBytes);
    bytesGauge(registry, budget);
    const tokens = env.tokens && createTokenVerifier({ ...env.tokens, clock, log });
    const shared = {
      log,
      corsOrigins: env.CORS_ORIGINS,
      trustProxy: env.TRUST_PROXY,
      watchers: [requestMetrics(registry), ...(tracing.isOn ? [requestSpans(tracing.tracer)] : [])],
      isStopping: () => isStopping,
      protectedResource: env.tokens && { issuer: env.tokens.issuer, publicUrl: env.PUBLIC_URL },
    };
    const app = createApplication(shared);
    const events = eventsRoute({
      authenticate: createAuthenticate({ keys, tokens, clock }),
      rates: new RateLimiter({
        redis,
        prefix: LIMITS_PREFIX,
        limits: rateLimits(env),
        observeRefusal: refusalCounter(registry),
      }),
      budget,
      book,
      clock,
      store: (events, size) => batcher.add(events, size),
      metrics,
    });
    // Reads its body itself, once it knows whose it is.
    app.route(EVENTS).post(events);
    app.use(readSmallBodies());
    app
      .route(EVENTS)
      .all(methodNotAllowed('POST', 'Events are read from the query API, which has an address of its own.'));
    const checks = [{ server: 'Redis', check: () => keys.ping().then(() => opened.require()) }];
    addServiceRoutes(app, { ...shared, checks, createDocument: createOpenApiDocument });
    addErrorResponses(app, shared);

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
