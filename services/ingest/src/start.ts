/** Connects to everything that ingest needs, then takes jobs. */

import { PriceBookError, QUEUE_NAME } from '@meterline/catalog';
import {
  abortable,
  connectRedis,
  type Service,
  StartError,
  startError,
  warehouseOptions,
  warnOfReplicas,
} from '@meterline/service';
import { createRedisClient } from '@meterline/service/access';
import { prepareClickHouse } from '@meterline/service/clickhouse';
import { createRegistry, statementMetrics } from '@meterline/service/metrics';
import { loadPriceBook } from '@meterline/service/price-book';
import { openQueueConnection } from '@meterline/service/queue';
import { eachObserver, statementSpans, type Tracing } from '@meterline/service/tracing';
import {
  ClusterError,
  createWarehouse,
  openShards,
  PriceBookConflictError,
  registerPriceBook,
} from '@meterline/warehouse';
import type { Logger } from 'pino';
import { openAdminPort } from './admin.js';
import { followClosedMonths } from './closed-months.js';
import { type Env, maxDataInWork } from './env.js';
import { EventStore } from './event-store.js';
import { Pricer } from './intake.js';
import { Lanes } from './lanes.js';
import { Maintainer } from './maintainer.js';
import { createIngestMetrics } from './metrics.js';
import { UsageWorker } from './usage-worker.js';

const CONNECT_TIMEOUT_MS = 5_000;
/** From it on, scripts may run while it is full. */
const OLDEST_REDIS = 7;
/** Long, because an insert that is given up is sent once more, which makes a slow ClickHouse slower still. */
const INSERT_TIMEOUT_MS = 60_000;
/** Nobody waits for a step of maintenance. One that is given up would start again from the beginning, and never end. */
const RECOMPUTING_TIMEOUT_MS = 900_000;
/** By so much the server gives up a statement before its caller does: it must not go on while another attempt begins. */
const ENDS_BEFORE_CALLER_MS = 5_000;
/** The part of a shutdown that may be spent on storing rows. In the rest, unfinished jobs go back to the queue. */
const STORING_SHARE = 0.75;
/** The jobs of two inserts that are under way, and those that are collected meanwhile for the next. */
const SHARES_OF_PLACES = 3;

/** @throws StartError */
export async function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const registry = createRegistry('ingest');
  const observe = eachObserver(statementMetrics(registry), statementSpans(tracing.tracer));
  const metrics = createIngestMetrics(registry);
  const { METERLINE_CONSTANTS: constants } = env;
  const maxMemoryBytes = env.STATEMENT_MB * 2 ** 20;
  const storage = { ...warehouseOptions(env, 'meterline-ingest'), observe, maxMemoryBytes };
  const priceBook = await asStartError(loadPriceBook(env.PRICE_BOOK), 'the price book could not be read');
  await checkRedis(env.REDIS_URL, log);
  await prepareClickHouse(storage, log);
  const within = (requestTimeoutMs: number) => ({
    ...storage,
    requestTimeoutMs,
    maxExecutionMs: requestTimeoutMs - ENDS_BEFORE_CALLER_MS,
  });
  const warehouse = createWarehouse(within(INSERT_TIMEOUT_MS));
  const shards = await asStartError(
    openShards(within(RECOMPUTING_TIMEOUT_MS)),
    'a shard of ClickHouse does not answer',
  );
  await asStartError(registerPriceBook(shards, priceBook), 'the price book could not be registered in ClickHouse');

  const closedMonths = await asStartError(
    followClosedMonths(warehouse, metrics, log),
    'ClickHouse does not tell which months are closed',
  );

  const giveUp = new AbortController();
  const store = new EventStore({ warehouse, metrics, tracer: tracing.tracer, log, signal: giveUp.signal });
  const lanes = new Lanes({
    sealDelayMs: constants.sealDelayMs,
    maxRows: constants.batchRows,
    flushMs: constants.flushMs,
    maxIntakes: Math.ceil(constants.concurrency / SHARES_OF_PLACES),
    store: (batch) => store.store(batch),
  });
  const worker = new UsageWorker({
    connection: openQueueConnection(env.REDIS_URL),
    prefix: env.QUEUE_PREFIX,
    concurrency: constants.concurrency,
    maxDataInWork: maxDataInWork(constants.batchRows),
    lanes,
    pricer: new Pricer(priceBook),
    closedBefore: closedMonths.before,
    givesUp: giveUp.signal,
    metrics,
    telemetry: tracing.queueTelemetry,
    log,
  });
  const maintainer =
    constants.maintenanceEveryMs > 0
      ? new Maintainer({
          shards: shards.all,
          connection: openQueueConnection(env.REDIS_URL),
          prefix: env.QUEUE_PREFIX,
          everyMs: constants.maintenanceEveryMs,
          delayMs: constants.sealDelayMs,
          metrics,
          log,
        })
      : undefined;
  const admin = await openAdminPort(env, { registry, worker, store, lanes }, log);
  maintainer?.run();
  worker.run();
  log.info(
    {
      event: 'started',
      queue: QUEUE_NAME,
      priceBook: priceBook.version,
      adminPort: admin?.port,
    },
    'taking jobs',
  );

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
        // Without Redis jobs can neither be acknowledged nor given back.
        log.warn(
          { event: 'stopped_unfinished' },
          'Redis does not answer; jobs in work start again when their locks expire',
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

/** The worker's own connections wait for Redis as long as it takes; a start does not. @throws StartError */
async function checkRedis(url: string, log: Logger): Promise<void> {
  const redis = createRedisClient(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: () => null,
  });
  try {
    await connectRedis(redis, url);
    const server = await redis.info('server').catch((error: unknown) => {
      throw startError('Redis does not tell its version; its user needs the command INFO', error);
    });
    // Valkey says there which Redis it is compatible with.
    const [, major = '0'] = /^redis_version:(\d+)\./m.exec(server) ?? [];
    if (Number(major) < OLDEST_REDIS) throw new StartError(`Redis must be version ${OLDEST_REDIS} or newer`);
    await warnOfReplicas(redis, url, log);
  } finally {
    redis.disconnect();
  }
}

/** A fault in a price book or in the cluster is the operator's to fix. @throws StartError */
async function asStartError<T>(work: Promise<T>, otherwise: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    for (const known of [PriceBookError, PriceBookConflictError, ClusterError]) {
      if (error instanceof known) throw new StartError(error.message, { cause: error });
    }
    throw startError(otherwise, error);
  }
}
