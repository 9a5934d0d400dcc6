/** Jobs of 500 events, from the queue until durable, compared with ClickHouse alone inserting the same rows. */
import { costOf, DEFAULT_PRICE_BOOK, parseUsageEvent, QUEUE_PREFIX } from '@meterline/catalog';
import { EventRows, Names, type PreparedInsert, type PricedEvent, prepareUsageEvents } from '@meterline/warehouse';
import type { Bench } from './bench.js';
import { atLeast, median } from './figure.js';
import { measureInTurn } from './measure.js';
import { ProcessorTimes } from './processor-times.js';
import { drainRate, liveEvent } from './usage-queue.js';

const DATABASE = 'ingest_batches';
const EVENTS_PER_JOB = 500;
/**
 * Enough that the beginning and end of a run, when the worker waits, matter little, and that both are charged their merges: a bare
 * insert of a second leaves its own to the time after it.
 */
const JOBS = 4_800;
/** The worker's default. */
const BATCH_ROWS = 65_000;

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
    const bare = new ProcessorTimes({ ClickHouse: site.clickhouse.pid });
    const bareRate = async () => {
      const stop = bare.start(JOBS * EVENTS_PER_JOB);
      const rate = await insertRate();
      stop();
      return rate;
    };
    const [workerRates, insertRates, spent] = await site.withIngest(
      { CLICKHOUSE_DATABASE: DATABASE },
      async (ingest) => {
        const times = new ProcessorTimes({ 'the worker': ingest.pid, ...site.serverPids });
        const drain = async () => EVENTS_PER_JOB * (await drainRate(queue, JOBS, EVENTS_PER_JOB, times));
        return [...(await measureInTurn(drain, bareRate)), times] as const;
      },
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
        reach: atLeast(worker / insert, 0.7),
      },
      ...spent.figures('ingest-500', 'an event'),
      ...bare.figures('ingest-500', 'a row of the bare insert'),
    ];
  },
};

function preparedInserts(rows: number): PreparedInsert[] {
  const inserts: PreparedInsert[] = [];
  for (let done = 0; done < rows; done += BATCH_ROWS) {
    const events = Array.from({ length: Math.min(BATCH_ROWS, rows - done) }, pricedEvent);
    inserts.push(prepareUsageEvents([EventRows.of(events, new Names())]));
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
