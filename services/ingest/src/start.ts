/** Connects to everything that ingest needs, then takes jobs. */
import { randomUUID } from 'node:crypto';
import { AnswerStamps, createRedisClient, REDIS_PREFIX, redisFailureKind } from '@meterline/access';
import { PriceBookError, QUEUE_NAME, queuePrefixOf } from '@meterline/catalog';
import { abortable, connectRedis, type Service, StartError, startError, warehouseOptions } from '@meterline/service';
import { prepareClickHouse } from '@meterline/service/clickhouse';
import { createRegistry, StatementMetrics } from '@meterline/service/metrics';
import { loadPriceBook } from '@meterline/service/price-book';
import { findShards } from '@meterline/service/queue';
import { eachObserver, statementSpans, type Tracing } from '@meterline/service/tracing';
import {
  ClusterError,
  openShards,
  PriceBookConflictError,
  registerPriceBook,
  type Warehouse,
} from '@meterline/warehouse';
import type { Logger } from 'pino';
import { openAdminPort } from './admin.js';
import { Budget } from './budget.js';
import { ClosedMonths } from './closed-months.js';
import { type Env, maxBytesInWork } from './env.js';
import { EventStore } from './event-store.js';
import { Pricer } from './intake.js';
import { Lanes } from './lanes.js';
import { createIngestMetrics } from './metrics.js';
import { knowsScriptFlags, QueueConnection } from './queue-connection.js';
import { Repairer } from './repairer.js';
import { Sealer } from './sealer.js';
import { ShardLanes } from './shard-lanes.js';
import { UsageWorker } from './usage-worker.js';
import { UsageWorkers } from './usage-workers.js';

const CONNECT_TIMEOUT_MS = 5_000;
/** Long, because an insert that is given up is sent once more, which makes a slow ClickHouse slower still. */
const INSERT_TIMEOUT_MS = 60_000;
/** Nobody waits for a step of sealing or repairing. One that is given up would start again from the beginning, and never end. */
const RECOMPUTING_TIMEOUT_MS = 900_000;
/** By so much the server gives up a statement before its caller does: it must not go on while another attempt begins. */
const ENDS_BEFORE_CALLER_MS = 5_000;
/** The part of a shutdown that may be spent on storing rows. In the rest, unfinished jobs go back to the queue. */
const STORING_SHARE = 0.75;
/** The jobs of two inserts that are under way, and those that are collected meanwhile for the next. */
const SHARES_OF_PLACES = 3;
/** BullMQ's own loop takes as many jobs as there are places, one by one, before it begins the first: with more it is slower. */
const PLACES_ONE_BY_ONE = 500;

/** @throws StartError */
export async function startService(env: Env, log: Logger, tracing: Tracing): Promise<Service> {
  const registry = createRegistry('ingest');
  const observe = eachObserver(new StatementMetrics(registry).observe, statementSpans(tracing.tracer));
  const metrics = createIngestMetrics(registry);
  const maxMemoryBytes = env.INGEST_STATEMENT_MB * 2 ** 20;
  const storage = { ...warehouseOptions(env, 'meterline-ingest'), observe, maxMemoryBytes };
  const priceBook = await asStartError(loadPriceBook(env.PRICE_BOOK), 'the price book could not be read');
  const queueOptions = { url: env.REDIS_URL, knowsScriptFlags: await checkRedis(env.REDIS_URL) };
  await prepareClickHouse(storage, log);
  const open = (requestTimeoutMs: number) =>
    openShards({ ...storage, requestTimeoutMs, maxExecutionMs: requestTimeoutMs - ENDS_BEFORE_CALLER_MS });
  const shards = await asStartError(open(INSERT_TIMEOUT_MS), 'a shard of ClickHouse does not answer');
  await asStartError(registerPriceBook(shards, priceBook), 'the price book could not be registered in ClickHouse');

  const closedMonths = new ClosedMonths({ shards, metrics, log });
  await closedMonths.run().catch((error: unknown) => {
    throw startError('ClickHouse does not tell which months are closed', error);
  });

  const giveUp = new AbortController();
  const writer = randomUUID();
  const { redis: stampsConnection } = new QueueConnection({ ...queueOptions, readsUsageJobs: false });
  // The worker's own connection to the same server reports it.
  stampsConnection.on('error', () => undefined);
  const stamps = new AnswerStamps(stampsConnection, REDIS_PREFIX);
  const common = { writer, stamps, log, signal: giveUp.signal, metrics, tracer: tracing.tracer };
  const stores = shards.all.map(numbered).map((shard) => new EventStore({ ...shard, ...common }));
  const storeOf = (text: string): EventStore => {
    const store = stores[shards.indexOf(text)];
    if (!store) throw new RangeError(`there is no shard for ${text}`);
    return store;
  };
  // The spans of a job are made by BullMQ's own loop.
  let takesMany = env.INGEST_TAKE === 'many' && !tracing.queueTelemetry;
  const places = () => Math.min(env.INGEST_CONCURRENCY, takesMany ? Number.POSITIVE_INFINITY : PLACES_ONE_BY_ONE);
  const lanesOf = (store: EventStore) =>
    new Lanes({
      sealDelayMs: env.SEAL_DELAY_MS,
      maxRows: env.INGEST_BATCH_ROWS,
      flushMs: env.INGEST_FLUSH_MS,
      maxIntakes: () => Math.ceil(places() / SHARES_OF_PLACES),
      store: (batch) => store.store(batch),
    });
  const lanes = new ShardLanes({
    lanes: stores.map(lanesOf),
    indexOf: shards.indexOf,
    isAway: (shard) => stores[shard]?.isClickHouseAway === true,
  });
  const pricer = new Pricer(priceBook);
  const connect = () => new QueueConnection({ ...queueOptions, readsUsageJobs: true });
  const connection = connect();
  const oversized = new Budget(() => 1);
  const workers = new UsageWorkers({
    shards: env.QUEUE_SHARDS,
    // Not by the connection of a queue: commands of that wait for a node that is away.
    find: () => findShards(stampsConnection, env.QUEUE_PREFIX),
    open: (shard, share) =>
      new UsageWorker({
        connection: shard === 0 ? connection : connect(),
        prefix: queuePrefixOf(env.QUEUE_PREFIX, shard, connection.redis.isCluster),
        shard,
        concurrency: () => Math.ceil(places() * share()),
        maxBytesInWork: () => maxBytesInWork(env) * share(),
        takesMany,
        onUnknownScripts: () => {
          takesMany = false;
        },
        oversized,
        lanes,
        keepPayloadPart: (part) => storeOf(part.jobId).keepPayloadPart(part),
        pricer,
        closedBefore: () => closedMonths.before,
        givesUp: giveUp.signal,
        metrics,
        telemetry: tracing.queueTelemetry,
        log,
      }),
    log,
  });
  const recomputing = await asStartError(
    open(RECOMPUTING_TIMEOUT_MS),
    'a shard of ClickHouse does not answer any more',
  );
  const openSealer = (shard: Numbered) =>
    new Sealer({
      ...shard,
      connection: new QueueConnection({ ...queueOptions, readsUsageJobs: false }),
      prefix: env.QUEUE_PREFIX,
      everyMs: env.SEAL_EVERY_MS,
      delayMs: env.SEAL_DELAY_MS,
      metrics,
      log,
    });
  const slow = recomputing.all.map(numbered);
  const sealers = env.SEAL_EVERY_MS > 0 ? slow.map(openSealer) : [];
  const openRepairer = (shard: Numbered) =>
    new Repairer({ ...shard, writer, everyMs: env.REPAIR_EVERY_MS, metrics, log });
  const repairers = env.REPAIR_EVERY_MS > 0 ? slow.map(openRepairer) : [];
  const admin = await openAdminPort(env, { registry, workers, stores, lanes }, log);
  for (const sealer of sealers) sealer.run();
  for (const repairer of repairers) repairer.run();
  workers.run();
  log.info(
    {
      event: 'started',
      queue: QUEUE_NAME,
      shards: env.QUEUE_SHARDS,
      priceBook: priceBook.version,
      adminPort: admin?.port,
    },
    'taking jobs',
  );

  return {
    stop: async () => {
      closedMonths.stop();
      lanes.flushNow();
      const storing = setTimeout(() => giveUp.abort(), env.SHUTDOWN_TIMEOUT_MS * STORING_SHARE);
      const deadline = AbortSignal.timeout(env.SHUTDOWN_TIMEOUT_MS);
      try {
        const background = [...sealers, ...repairers].map((each) => each.close());
        await abortable(Promise.all([workers.close(), ...background]), deadline);
      } catch (error) {
        stampsConnection.disconnect();
        if (!deadline.aborted) throw error;
        // Without Redis jobs can neither be acknowledged nor given back.
        log.warn(
          { event: 'stopped_unfinished' },
          'Redis does not answer; jobs in work start again when their locks expire',
        );
        return;
      }
      clearTimeout(storing);
      stampsConnection.disconnect();
      lanes.stop();
      await admin?.close();
      await Promise.all([shards.close(), recomputing.close()]);
    },
  };
}

interface Numbered {
  readonly warehouse: Warehouse;
  /** From 1 on; undefined: one server. */
  readonly shard: number | undefined;
}

function numbered(warehouse: Warehouse, index: number, { length }: readonly Warehouse[]): Numbered {
  return { warehouse, shard: length > 1 ? index + 1 : undefined };
}

/**
 * The worker's own connections wait for Redis as long as it takes; a start does not.
 * @returns whether this Redis knows flags of scripts
 * @throws StartError
 */
async function checkRedis(url: string): Promise<boolean> {
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
    // What was restored while no worker ran shows at once. Each store does so too, before it acknowledges.
    await new AnswerStamps(redis, REDIS_PREFIX).renewAll().catch((error: unknown) => {
      // A node of a Redis Cluster that is away is waited for when there is something to renew.
      if (redisFailureKind(error) !== 'refused') return;
      throw startError(`Redis does not let the worker renew stamps; its user needs ~${REDIS_PREFIX}:stamps:*`, error);
    });
    return knowsScriptFlags(server);
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
