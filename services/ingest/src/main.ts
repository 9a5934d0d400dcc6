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
  const deadline = setTimeout(() => giveUp.abort(), env.SHUTDOWN_TIMEOUT_MS);
  await worker.close();
  clearTimeout(deadline);
  await health?.close();
  await warehouse.close();
  log.info({ event: 'stopped' }, 'Ingest has stopped');
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
    waitingJobs: await queue.getWaitingCount(),
    lastProgressAt: worker.lastProgressAt,
    outage: store.isWaiting,
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
    console.error(`meterline-ingest: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
}

await main();
