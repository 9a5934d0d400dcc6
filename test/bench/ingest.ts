/**
 * From the queue until durable: jobs of 500 events, beside ClickHouse alone inserting the same rows, and of one event, beside a BullMQ
 * worker that does nothing.
 */
import { costOf, DEFAULT_PRICE_BOOK, parseUsageEvent, QUEUE_NAME } from '@meterline/catalog';
import { EventRows, Names, type PreparedInsert, type PricedEvent, prepareUsageEvents } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { atLeast, type Figure, measureInTurn, median, medianOf, ProcessorTimes } from './figure.js';
import type { Bench, Fixture } from './fixture.js';
import { drainRate, liveEvent } from './usage-queue.js';

/**
 * Enough that the beginning and end of a run, when the worker waits, matter little, and that both are charged their merges: a bare
 * insert of a second leaves its own to the time after it.
 */
const BATCHES = { database: 'ingest_500', jobs: 4_800, eventsPerJob: 500 };
/** Some seconds of work: the last insert of a run waits for others that do not come. */
const SINGLES = { database: 'ingest_1', jobs: 40_000, eventsPerJob: 1 };
/** The worker's defaults. */
const BATCH_ROWS = 65_000;
const CONCURRENCY = 1_000;

export const ingestBatches: Bench = {
  name: 'ingest-500',
  async run({ fixture }) {
    const { warehouse } = await fixture.product(BATCHES.database);
    const rows = BATCHES.jobs * BATCHES.eventsPerJob;
    const inserts = preparedInserts(rows);
    const bare = new ProcessorTimes({ ClickHouse: fixture.serverPids.ClickHouse });
    const insertRate = async () => {
      const started = performance.now();
      await bare.of(rows, async () => {
        for (const insert of inserts) await insert(warehouse);
      });
      return (1000 * rows) / (performance.now() - started);
    };
    const figures = await queueToDurable(fixture, BATCHES, 'bare insert of such rows, same format', insertRate, 0.5);
    return [...figures, ...bare.figures('a row of the bare insert')];
  },
};

export const ingestSingles: Bench = {
  name: 'ingest-1',
  async run({ fixture }) {
    const { url, prefix } = { url: (await fixture.product(SINGLES.database)).env.REDIS_URL ?? '', prefix: 'idle' };
    const idle = new Queue(QUEUE_NAME, { connection: { url, maxRetriesPerRequest: null }, prefix });
    idle.on('error', () => undefined);
    const idleRate = () => drainRate(idle, SINGLES.jobs, 1);
    try {
      return await fixture.withPeer([prefix, 'idle', CONCURRENCY], () =>
        queueToDurable(fixture, SINGLES, 'BullMQ worker that does nothing', idleRate, 0.6),
      );
    } finally {
      await idle.close();
    }
  },
};

/** @param peerRate events a second @param wanted of that */
async function queueToDurable(
  fixture: Fixture,
  { database, jobs, eventsPerJob }: typeof BATCHES,
  peer: string,
  peerRate: () => Promise<number>,
  wanted: number,
): Promise<Figure[]> {
  const product = await fixture.product(database);
  const [rates, peerRates, spent] = await fixture.withIngest(product, async ({ pid }) => {
    const times = new ProcessorTimes({ 'the worker': pid, ...fixture.serverPids });
    const timed = (work: () => Promise<void>) => times.of(jobs * eventsPerJob, work);
    const drain = () => drainRate(product.queue, jobs, eventsPerJob, timed);
    return [...(await measureInTurn(drain, peerRate)), times] as const;
  });
  await fixture.drop(database);
  const value = median(peerRates);
  return [
    {
      ...medianOf(`jobs of ${eventsPerJob} events, queue to durable`, 'events/s', rates),
      ...{ beside: [{ what: peer, value, unit: 'events/s' }], reach: atLeast(median(rates) / value, wanted) },
    },
    ...spent.figures('an event'),
  ];
}

function preparedInserts(rows: number): PreparedInsert[] {
  return Array.from({ length: Math.ceil(rows / BATCH_ROWS) }, (_, batch) => {
    const events = Array.from({ length: Math.min(BATCH_ROWS, rows - batch * BATCH_ROWS) }, pricedEvent);
    return prepareUsageEvents([EventRows.of(events, new Names())]);
  });
}

function pricedEvent(): PricedEvent {
  const event = parseUsageEvent(liveEvent(), Date.now());
  if (!event.ok) throw new Error(event.message);
  const { accountId, billingDimension, timestamp, usage } = event.value;
  const price = DEFAULT_PRICE_BOOK.priceAt(accountId, billingDimension, timestamp);
  if (!price) throw new Error(`the example book has no price for ${billingDimension}`);
  return { ...event.value, cost: costOf(usage, price), priceRevision: 0, priceBook: 0 };
}
