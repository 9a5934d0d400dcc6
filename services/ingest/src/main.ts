import { PriceBookError, QUEUE_NAME } from '@meterline/catalog';
import { createWarehouse, MigrationError, PriceBookConflictError, type WarehouseOptions } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { type Logger, pino } from 'pino';
import { Batcher } from './batcher.js';
import { type Env, EnvError, maxBytesInWork, readEnv } from './env.js';
import { EventStore } from './event-store.js';
import { serveHealth } from './health.js';
import { loadPriceBook } from './price-book-file.js';
import { shutdownSignal } from './shutdown.js';
import { checkRedis, listening, prepareDatabase, preparePriceBook, StartUpError } from './start-up.js';
import { UsageWorker } from './usage-worker.js';

const EXPLAINED = [EnvError, PriceBookError, PriceBookConflictError, MigrationError, StartUpError];

/** The part of a shutdown that may be spent on storing rows; in the rest unfinished jobs go back to the queue. */
const STORING_SHARE = 0.75;

async function run(env: Env, log: Logger): Promise<void> {
  const options: WarehouseOptions = {
    url: env.CLICKHOUSE_URL,
    user: env.CLICKHOUSE_USER,
    password: env.CLICKHOUSE_PASSWORD,
    database: env.CLICKHOUSE_DATABASE,
    application: 'meterline-ingest',
  };
  const priceBook = await loadPriceBook(env.PRICE_BOOK);
  await checkRedis(env.REDIS_URL);
  await prepareDatabase(options, log);
  const warehouse = createWarehouse(options);
  await preparePriceBook(warehouse, options.url, priceBook);

  const giveUp = new AbortController();
  const store = new EventStore(warehouse, log, giveUp.signal);
  const batcher = new Batcher({
    maxRows: env.INGEST_BATCH_ROWS,
    flushMs: env.INGEST_FLUSH_MS,
    maxIntakes: Math.ceil(env.INGEST_CONCURRENCY / 2),
    store: (batch) => store.store(batch),
  });
  const worker = new UsageWorker({
    redisUrl: env.REDIS_URL,
    prefix: env.QUEUE_PREFIX,
    concurrency: env.INGEST_CONCURRENCY,
    maxBytesInWork: maxBytesInWork(env),
    batcher,
    priceBook,
    log,
  });
  const health = await openHealth(env, worker, store, log);
  worker.run();
  log.info({ event: 'started', queue: QUEUE_NAME, priceBook: priceBook.version }, 'Ingest takes jobs');

  await shutdownSignal();
  log.info({ event: 'stopping' }, 'Ingest takes no more jobs');
  const timers = [
    setTimeout(() => giveUp.abort(), env.SHUTDOWN_TIMEOUT_MS * STORING_SHARE),
    setTimeout(() => stopUnfinished(log), env.SHUTDOWN_TIMEOUT_MS),
  ];
  batcher.hurry();
  await worker.close();
  await health?.close();
  await warehouse.close();
  for (const timer of timers) clearTimeout(timer);
  log.info({ event: 'stopped' }, 'Ingest has stopped');
}

/** Without Redis jobs can neither be acknowledged nor given back. */
function stopUnfinished(log: Logger): never {
  log.warn({ event: 'stopped_unfinished' }, 'Redis does not answer; when their locks expire, jobs in work start anew');
  process.exit(0);
}

interface Health {
  close(): Promise<void>;
}

async function openHealth(env: Env, worker: UsageWorker, store: EventStore, log: Logger): Promise<Health | undefined> {
  const port = env.ADMIN_PORT;
  if (port === undefined) return undefined;
  const queue = new Queue(QUEUE_NAME, { connection: { url: env.REDIS_URL }, prefix: env.QUEUE_PREFIX });
  // The worker's own connection tells of an outage.
  queue.on('error', () => undefined);
  const consumption = async () => ({
    // Without Redis the question would wait for it, and the health check with it.
    waitingJobs: worker.isWaiting ? 0 : await queue.getWaitingCount(),
    lastProgressAt: worker.lastProgressAt,
    outage: store.isWaiting || worker.isWaiting,
  });
  const server = await listening(port, () => serveHealth(port, consumption, log));
  return {
    close: async () => {
      server.close();
      await queue.close();
    },
  };
}

async function main(): Promise<void> {
  try {
    const env = readEnv(process.env);
    await run(env, pino({ name: 'ingest', level: env.LOG_LEVEL }));
  } catch (error) {
    if (!EXPLAINED.some((known) => error instanceof known)) throw error;
    const message = error instanceof Error ? error.message : String(error);
    console.error(`meterline-ingest: ${message.replace(/\s+/g, ' ').trim()}`);
    // Connections that are open by now would keep the process running.
    process.exit(1);
  }
}

await main();
