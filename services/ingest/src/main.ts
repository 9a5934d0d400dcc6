/** Runs the ingest service: connects to Redis and ClickHouse, and then takes jobs. */

import { abortable, type EpochMs, formatTimestamp, QUEUE_NAME } from '@meterline/catalog';
import {
  checkRedis,
  collectGarbageLate,
  runService,
  type Service,
  StartError,
  shared,
  startError,
  warehouseOptions,
  warnOfReplicas,
} from '@meterline/service';
import { prepareClickHouse, registerCatalog } from '@meterline/service/clickhouse';
import { openPriceBook } from '@meterline/service/files';
import { createRegistry, observeStatements } from '@meterline/service/metrics';
import { openQueueConnection } from '@meterline/service/queue';
import type { Tracing } from '@meterline/service/tracing';
import {
  ClusterError,
  createWarehouse,
  openShards,
  readBounds,
  registerPriceBook,
  type Warehouse,
} from '@meterline/warehouse';
import type { Logger } from 'pino';
import { openAdminPort } from './admin.js';
import { type Env, maxDataInWork, readEnv } from './env.js';
import { EventStore } from './event-store.js';
import { JobPreparer } from './intake.js';
import { Lanes } from './lanes.js';
import { Maintainer } from './maintainer.js';
import { createIngestMetrics, type IngestMetrics } from './metrics.js';
import { UsageWorker } from './usage-worker.js';

/** The timeout is long, because an insert that times out is sent again, which would make a slow ClickHouse even slower. */
const INSERT_TIMEOUT_MS = 60_000;
/** The timeout is long, because no caller waits for maintenance. A step that timed out would start over, perhaps forever. */
const RECOMPUTING_TIMEOUT_MS = 900_000;
/** The server stops a statement this long before the client's timeout, so that the statement has ended before a retry begins. */
const ENDS_BEFORE_CALLER_MS = 5_000;
/** The share of the shutdown time in which rows may still be stored. In the rest, unfinished jobs are returned to the queue. */
const STORING_SHARE = 0.75;
/** The limit of concurrent jobs is divided among three inserts: two that are running, and a third that is being collected. */
const SHARES_OF_PLACES = 3;
/** Each worker learns of newly closed months within this time. */
const BOUNDS_EVERY_MS = 5_000;

async function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const registry = createRegistry('ingest');
  const observe = observeStatements(registry, tracing.tracer);
  const metrics = createIngestMetrics(registry);
  const { METERLINE_CONSTANTS: constants } = env;
  const maxMemoryBytes = env.STATEMENT_MB * 2 ** 20;
  const storage = { ...warehouseOptions(env, 'meterline-ingest'), observe, maxMemoryBytes };
  const priceBook = await openPriceBook(env);
  await checkRedis(env.REDIS_URL, (redis) => warnOfReplicas(redis, env.REDIS_URL, log));
  await prepareClickHouse(storage, log);
  const withTimeout = (requestTimeoutMs: number) => ({
    ...storage,
    requestTimeoutMs,
    maxExecutionMs: requestTimeoutMs - ENDS_BEFORE_CALLER_MS,
  });
  const warehouse = createWarehouse(withTimeout(INSERT_TIMEOUT_MS));
  const shards = await asStartError(
    openShards(withTimeout(RECOMPUTING_TIMEOUT_MS)),
    'a shard of ClickHouse does not respond',
  );
  await registerCatalog(storage, warehouse);
  await asStartError(registerPriceBook(shards, priceBook), 'the price book could not be registered in ClickHouse');

  const closedMonths = await asStartError(
    followClosedMonths(warehouse, metrics, log),
    'the closed months could not be read from ClickHouse',
  );

  const giveUp = new AbortController();
  const store = new EventStore({ warehouse, metrics, tracer: tracing.tracer, log, signal: giveUp.signal });
  const lanes = new Lanes({
    sealDelayMs: constants.sealDelayMs,
    maxRows: constants.batchRows,
    flushMs: constants.flushMs,
    maxSlices: Math.ceil(constants.concurrency / SHARES_OF_PLACES),
    store: (batch) => store.store(batch),
  });
  const ofQueue = { prefix: env.QUEUE_PREFIX, lockMs: constants.lockMs, metrics, log };
  const worker = new UsageWorker({
    ...ofQueue,
    connection: openQueueConnection(env.REDIS_URL),
    concurrency: constants.concurrency,
    maxDataInWork: maxDataInWork(constants.batchRows),
    lanes,
    preparer: new JobPreparer(priceBook),
    closedBefore: closedMonths.before,
    givesUp: giveUp.signal,
    telemetry: tracing.queueTelemetry,
  });
  const everyMs = constants.maintenanceEveryMs;
  const maintainer =
    everyMs > 0
      ? new Maintainer({
          ...ofQueue,
          shards: shards.all,
          connection: openQueueConnection(env.REDIS_URL),
          everyMs,
          delayMs: constants.sealDelayMs,
        })
      : undefined;
  const admin = await openAdminPort(env, registry, { worker, store, lanes, clock: Date.now }, log);
  maintainer?.run();
  worker.run();
  const facts = { queue: QUEUE_NAME, priceBook: priceBook.version, adminPort: admin?.port };
  log.info({ event: 'started', ...facts }, 'taking jobs');

  return {
    stop: async () => {
      closedMonths.stop();
      lanes.flushNow();
      const storingTimer = setTimeout(() => giveUp.abort(), constants.shutdownMs * STORING_SHARE);
      const deadline = AbortSignal.timeout(constants.shutdownMs);
      try {
        await abortable(Promise.all([worker.close(), maintainer?.close()]), deadline);
      } catch (error) {
        if (!deadline.aborted) throw error;
        // Without Redis, the worker can neither acknowledge jobs nor return them to the queue.
        log.warn(
          { event: 'stopped_unfinished' },
          'Redis does not respond; unfinished jobs start again when their locks expire',
        );
        return;
      }
      clearTimeout(storingTimer);
      lanes.stop();
      await admin?.close();
      await Promise.all([warehouse.close(), shards.close()]);
    },
  };
}

/** Converts errors to StartError. A ClusterError keeps its message, which tells the operator what to fix. */
async function asStartError<T>(work: Promise<T>, otherwise: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ClusterError) throw new StartError(error.message, { cause: error });
    throw startError(otherwise, error);
  }
}

/**
 * Reads the bound before which events are too old to accept, every few seconds. A worker that does not know a new bound yet stores events
 * that others already reject; retention.ts in packages/warehouse explains why this is correct. Resolves once the current bound is known.
 */
async function followClosedMonths(warehouse: Warehouse, metrics: IngestMetrics, log: Logger) {
  let before: EpochMs = 0;
  const refresh = shared(async () => {
    const { closedBefore } = await readBounds(warehouse);
    metrics.closedBefore.set(closedBefore / 1000);
    if (closedBefore === before) return;
    before = closedBefore;
    const text = formatTimestamp(before);
    log.info({ event: 'months_closed', before: text }, 'events before this time are rejected from now on');
  });
  await refresh();
  // Ignore failures, because the event store reports outages.
  const refreshing = setInterval(() => refresh().catch(() => undefined), BOUNDS_EVERY_MS);
  return { before: () => before, stop: () => clearInterval(refreshing) };
}

collectGarbageLate();
await runService('meterline-ingest', readEnv, startService);
