/** Jobs of 500 events, from the queue until durable, compared with ClickHouse alone inserting the same rows. */
import { costOf, DEFAULT_PRICE_BOOK, parseUsageEvent, QUEUE_PREFIX } from '@meterline/catalog';
import { type PreparedInsert, type PricedEvent, prepareUsageEvents } from '@meterline/warehouse';
import type { Bench } from './bench.js';
import { atLeast, median } from './figure.js';
import { measureInTurn } from './measure.js';
import { drainRate, liveEvent } from './usage-queue.js';

const DATABASE = 'ingest_batches';
const EVENTS_PER_JOB = 500;
/** Enough that the beginning and end of a run, when the worker waits, matter little. */
const JOBS = 600;
/** The worker's default. */
const BATCH_ROWS = 20_000;

export const ingestBatches: Bench = {
  name: 'ingest-500',
  async run({ site }) {
    const warehouse = await site.warehouse(DATABASE);
    const queue = site.queue(QUEUE_PREFIX);
    const inserts = preparedInserts(JOBS * EVENTS_PER_JOB);
    const insertRate = async () => {
      const started = performance.now();
      for (const insert of inserts) await insert(warehouse);
      return (JOBS * EVENTS_PER_JOB) / ((performance.now() - started) / 1000);
    };
    const [workerRates, insertRates] = await site.withIngest({ CLICKHOUSE_DATABASE: DATABASE }, () =>
      measureInTurn(async () => EVENTS_PER_JOB * (await drainRate(queue, JOBS, EVENTS_PER_JOB)), insertRate),
    );
    await site.drop(DATABASE);
    const worker = median(workerRates);
    const insert = median(insertRates);
    return [
      {
        bench: 'ingest-500',
        what: 'jobs of 500 events, queue to durable',
        value: worker,
        unit: 'events/s',
        runs: workerRates,
        beside: [{ what: 'bare insert of such rows, same format, from memory', value: insert, unit: 'rows/s' }],
        reach: atLeast(worker / insert, 0.5),
      },
    ];
  },
};

function preparedInserts(rows: number): PreparedInsert[] {
  const inserts: PreparedInsert[] = [];
  for (let done = 0; done < rows; done += BATCH_ROWS) {
    inserts.push(prepareUsageEvents(Array.from({ length: Math.min(BATCH_ROWS, rows - done) }, pricedEvent)));
  }
  return inserts;
}

function pricedEvent(): PricedEvent {
  const event = parseUsageEvent(liveEvent(), Date.now());
  if (!event.ok) throw new Error(event.message);
  const { accountId, billingDimension, timestamp, usage } = event.value;
  const price = DEFAULT_PRICE_BOOK.priceAt(accountId, billingDimension, timestamp);
  if (!price) throw new Error(`the example book has no price for ${billingDimension}`);
  return { ...event.value, cost: costOf(usage, price), priceRevision: 0, priceBook: 0 };
}
