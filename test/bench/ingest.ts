/**
 * From the queue until durable: jobs of 500 events, beside ClickHouse alone inserting the same rows, and of one event, beside a BullMQ
 * worker that does nothing.
 */
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
        what: 'jobs of 500 events, queue to durable',
        value: worker,
        unit: 'events/s',
        runs: workerRates,
        beside: [{ what: 'bare insert of such rows, same format, from memory', value: insert, unit: 'rows/s' }],
        reach: atLeast(worker / insert, 0.5),
      },
      ...spent.figures('an event'),
      ...bare.figures('a row of the bare insert'),
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

const SINGLES = 'ingest_singles';
/** Some seconds of work: the last insert of a run waits for others that do not come. */
const SINGLE_JOBS = 40_000;
/** As many as the worker has by default. */
const IDLE_CONCURRENCY = 1_000;
const IDLE_PREFIX = 'bench-idle';

export const ingestSingles: Bench = {
  name: 'ingest-1',
  async run({ site }) {
    await site.warehouse(SINGLES);
    const queue = site.queue(QUEUE_PREFIX);
    const idleQueue = site.queue(IDLE_PREFIX);
    const environment = { CLICKHOUSE_SINGLES: SINGLES };
    const idleArgs = [site.redisUrl, IDLE_PREFIX, String(IDLE_CONCURRENCY)];
    const [workerRates, idleRates, spent] = await site.withScript('./idle-worker.js', idleArgs, () =>
      site.withIngest(environment, async (ingest) => {
        const times = new ProcessorTimes({ 'the worker': ingest.pid, ...site.serverPids });
        const drain = () => drainRate(queue, SINGLE_JOBS, 1, times);
        return [...(await measureInTurn(drain, () => drainRate(idleQueue, SINGLE_JOBS, 1))), times] as const;
      }),
    );
    await site.drop(SINGLES);
    const worker = median(workerRates);
    const nothing = median(idleRates);
    return [
      {
        what: 'one event a job, queue to durable',
        value: worker,
        unit: 'jobs/s',
        runs: workerRates,
        beside: [{ what: 'BullMQ worker that does nothing', value: nothing, unit: 'jobs/s' }],
        reach: atLeast(worker / nothing, 0.6),
      },
      ...spent.figures('a job of one event'),
    ];
  },
};
