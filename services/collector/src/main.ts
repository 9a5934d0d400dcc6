/** Starts the collector: connects to Redis, builds the application, and opens the port. */

import {
  addErrorResponses,
  addServiceRoutes,
  ByteBudget,
  createApplication,
  createAuthenticate,
  hostService,
  methodNotAllowed,
  RateLimiter,
  readSmallBodies,
} from '@meterline/api';
import { MAX_EVENTS_PER_JOB } from '@meterline/catalog';
import { collectGarbageLate, runService, type Service, warnOfReplicas } from '@meterline/service';
import { openPriceBook } from '@meterline/service/files';
import { outageGauge } from '@meterline/service/metrics';
import type { Tracing } from '@meterline/service/tracing';
import type { Logger } from 'pino';
import { type Env, platformRates, readEnv } from './env.js';
import { MAX_BODY_BYTES } from './events/formats.js';
import { eventsRoute } from './events/route.js';
import { createEventMetrics } from './metrics.js';
import { createOpenApiDocument } from './openapi/document.js';
import { MicroBatcher } from './queue/micro-batch.js';
import { UsageQueue } from './queue/usage-queue.js';

const EVENTS = '/v0/events';
/** Maximum share of the bytes in flight: per account for tenants, and per caller for the platform. */
const BYTE_SHARES = { tenants: 1 / 4, platform: 1 / 2 };

function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const { METERLINE_CONSTANTS: constants } = env;
  const outage = 'requests get 503 until it does';
  const options = { name: 'collector', log, tracing, outage } as const;
  return hostService(env, options, async (host) => {
    const { clock, keys, observeDenial, rates, redis, registry } = host;
    const book = await openPriceBook(env);
    await warnOfReplicas(redis, env.REDIS_URL, log);
    outageGauge(registry, { Redis: () => keys.ping().then(() => true) });
    const queue = await UsageQueue.open({
      redisUrl: env.REDIS_URL,
      prefix: env.QUEUE_PREFIX,
      writeMs: constants.writeMs,
      telemetry: tracing.queueTelemetry,
    });
    host.onClose(() => queue.disconnect());

    const limits = {
      tenants: { rates, budget: new ByteBudget(constants.maxBytes, BYTE_SHARES.tenants) },
      platform: {
        rates: new RateLimiter({ limits: platformRates(env), observeDenial }),
        budget: new ByteBudget(constants.platformMaxBytes, BYTE_SHARES.platform),
      },
    };
    const metrics = createEventMetrics(registry, () => limits.tenants.budget.total + limits.platform.budget.total);
    const batcher = new MicroBatcher({
      write: (events) => metrics.write(events.length, queue.add(events)),
      holdMs: constants.holdMs,
      maxEvents: MAX_EVENTS_PER_JOB,
      maxBytes: MAX_BODY_BYTES,
    });
    const app = createApplication(host);
    const events = eventsRoute({
      authenticate: createAuthenticate(host),
      limits,
      book,
      clock,
      store: (events, size) => batcher.add(events, size),
      metrics,
    });
    // The route is registered before the body parser, because the route reads the body itself, after authentication.
    app.route(EVENTS).post(events);
    app.use(readSmallBodies());
    app.route(EVENTS).all(methodNotAllowed('POST', 'Events are read from the query API, which has its own address.'));
    const checks = [{ server: 'Redis', check: () => host.redisStatus().then(() => queue.require()) }];
    addServiceRoutes(app, { ...host, checks, createDocument: createOpenApiDocument });
    addErrorResponses(app, host);
    return { app, facts: { priceBook: book.version } };
  });
}

collectGarbageLate();
await runService('meterline-collector', readEnv, startService);
