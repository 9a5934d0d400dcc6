/**
 * From the queue until durable: jobs of 500 events, beside ClickHouse alone inserting the same rows and beside the worker that a team would
 * write instead, and of one event, beside a BullMQ worker that does nothing. And until a response includes an event, while 500 others arrive every second.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { costOf, DEFAULT_PRICE_BOOK, formatTimestamp, MS_PER_HOUR, parseUsageEvent } from '@meterline/catalog';
import { EventRows, Names, type PreparedInsert, type PricedEvent, prepareUsageEvents } from '@meterline/warehouse';
import type { Product } from '../harness/product.js';
import { execute } from '../harness/stack.js';
import {
  type Figure,
  figure,
  limit,
  measure,
  measureInTurn,
  median,
  ProcessorTimes,
  percentile,
  ratio,
} from './figure.js';
import type { Bench, Fixture } from './fixture.js';
import { drainRate, HttpClient, jobOf, liveEvent } from './traffic.js';

/**
 * Enough that the beginning and end of a run, when the worker waits, matter little, and that both are charged their merges: a bare
 * insert of a second leaves its own to the time after it.
 */
const BATCHES = { database: 'ingest_500', jobs: 1_000, eventsPerJob: 500 };
/** Some seconds of work: the last insert of a run waits for others that do not come. */
const SINGLES = { database: 'ingest_1', jobs: 40_000, eventsPerJob: 1 };
/** Each fills and empties a queue, which takes many seconds. */
const DRAINS = 3;
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
    const figures = await queueToDurable(fixture, BATCHES, 'bare insert of such rows, same format', insertRate, 0.4);
    return [...figures, ...bare.figures('a row of the bare insert'), await besidePlainWorker(fixture)];
  },
};

const PLAIN_TABLE = `
CREATE TABLE plain_events
(
    accountId LowCardinality(String), eventId UUID, timestamp DateTime64(3, 'UTC'), workspace LowCardinality(String),
    resourceType LowCardinality(String), resourceName LowCardinality(String), resourceUuid LowCardinality(String),
    billingDimension LowCardinality(String), usage Decimal(38, 9), cost Decimal(38, 12)
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(timestamp)
ORDER BY (accountId, timestamp, eventId)`;

/** Both take jobs in turn, each from a queue of its own on the same servers. */
async function besidePlainWorker(fixture: Fixture): Promise<Figure> {
  const { jobs, eventsPerJob } = BATCHES;
  return fixture.withProduct('ingest_plain', async (product) => {
    await execute(product.warehouse, PLAIN_TABLE);
    const { CLICKHOUSE_URL: url, CLICKHOUSE_USER: username, CLICKHOUSE_PASSWORD: password } = product.env;
    const clickhouse = JSON.stringify({ url, username, password, database: product.env.CLICKHOUSE_DATABASE });
    return fixture.withQueue('plain', (plain) =>
      fixture.withPeer(['plain', 'plain', clickhouse], () =>
        fixture.withIngest(product, async () => {
          const drain = () => drainRate(product.queue, jobs, eventsPerJob);
          const [rates, plainRates] = await measureInTurn(drain, () => drainRate(plain, jobs, eventsPerJob), {
            runs: DRAINS,
          });
          const beside = { 'a plain worker': median(plainRates) };
          return figure('jobs of 500 events, beside a plain worker', 'events/s', rates, {
            ...{ beside, goal: ratio('≥', 1.5, median(plainRates)) },
          });
        }),
      ),
    );
  });
}

export const ingestSingles: Bench = {
  name: 'ingest-1',
  async run({ fixture }) {
    return fixture.withQueue('idle', (idle) =>
      fixture.withPeer(['idle', 'idle', CONCURRENCY], () => {
        const idleRate = () => drainRate(idle, SINGLES.jobs, 1);
        return queueToDurable(fixture, SINGLES, 'BullMQ worker that does nothing', idleRate, 0.6);
      }),
    );
  },
};

/** @param peerRate events a second @param wanted the least share of that rate */
function queueToDurable(
  fixture: Fixture,
  { database, jobs, eventsPerJob }: typeof BATCHES,
  peer: string,
  peerRate: () => Promise<number>,
  wanted: number,
): Promise<Figure[]> {
  return fixture.withProduct(database, (product) =>
    fixture.withIngest(product, async ({ pid }) => {
      const spent = new ProcessorTimes({ 'the worker': pid, ...fixture.serverPids });
      const timed = (work: () => Promise<void>) => spent.of(jobs * eventsPerJob, work);
      const drain = () => drainRate(product.queue, jobs, eventsPerJob, timed);
      const [rates, peerRates] = await measureInTurn(drain, peerRate, { runs: DRAINS });
      const [beside, goal] = [{ [peer]: median(peerRates) }, ratio('≥', wanted, median(peerRates))];
      return [
        figure(`jobs of ${eventsPerJob} events, queue to durable`, 'events/s', rates, { beside, goal }),
        ...spent.figures('an event'),
      ];
    }),
  );
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

const FRESHNESS = 'freshness';
const EVENTS_PER_SECOND = 500;
const TICK_MS = 20;
const ROUND_MS = 8_000;
/** How often a probe is sent: an event whose time until it is visible is measured. */
const PROBE_MS = 200;
const GIVE_UP_MS = 30_000;

export const freshness: Bench = {
  name: 'freshness',
  run: ({ fixture, signal }) =>
    fixture.withProduct(FRESHNESS, async (product) => {
      const key = await product.key(FRESHNESS);
      const p50s: number[] = [];
      const p99s = await fixture.withQuery(product, ({ url }) =>
        fixture.withIngest(product, () =>
          measure(async () => {
            signal.throwIfAborted();
            const waits = await probeRound(product, url, key);
            p50s.push(median(waits));
            return percentile(waits, 0.99);
          }),
        ),
      );
      const what = `enqueued to visible in /metrics, at ${EVENTS_PER_SECOND} events/s`;
      const goal = limit('≤', 1_000, 'ms');
      return [figure(`${what}, p50`, 'ms', p50s.slice(1)), figure(`${what}, p99`, 'ms', p99s, { goal })];
    }),
};

/** @returns how long each probe waited, in milliseconds */
async function probeRound({ queue }: Product, url: string, key: string): Promise<number[]> {
  const http = new HttpClient(64);
  const probe = async () => {
    const name = crypto.randomUUID();
    const now = Date.now();
    const window = { startTime: formatTimestamp(now - MS_PER_HOUR), endTime: formatTimestamp(now + MS_PER_HOUR) };
    const query = new URLSearchParams({ ...window, groupBy: 'resource_name', resourceName: name });
    const started = performance.now();
    await queue.add('usage', { ...liveEvent(), accountId: FRESHNESS, resourceName: name });
    while (performance.now() - started < GIVE_UP_MS) {
      const { body } = await http.ok(`${url}/v0/accounts/${FRESHNESS}/metrics?${query}`, key);
      if (body.includes(`"${name}"`)) return performance.now() - started;
      await delay(TICK_MS);
    }
    throw new Error(`an event was not visible ${GIVE_UP_MS / 1000} s after it was enqueued`);
  };
  const probes: Promise<number>[] = [];
  const started = performance.now();
  let sent = 0;
  for (let elapsed = 0; elapsed < ROUND_MS; elapsed = performance.now() - started) {
    const due = Math.floor((elapsed / 1000) * EVENTS_PER_SECOND);
    if (due > sent) await queue.addBulk(Array.from({ length: due - sent }, () => jobOf(1)));
    sent = due;
    if (probes.length * PROBE_MS <= elapsed) probes.push(probe());
    await delay(TICK_MS);
  }
  return Promise.all(probes).finally(() => http.close());
}
