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

/** Large enough that the waits of the worker at the start and the end of a run matter little. */
const BATCHES = { database: 'ingest_500', jobs: 600, eventsPerJob: 500 };
/** Some seconds of work: the last insert of a run waits for others that do not come. */
const SINGLES = { database: 'ingest_1', jobs: 40_000, eventsPerJob: 1 };
/** Each fills and empties a queue, which takes many seconds. */
const DRAINS = 3;
const MILLION = 1_000_000;
/** The worker's defaults. */
const BATCH_ROWS = 65_000;
const CONCURRENCY = 1_000;

export const ingestBatches: Bench = {
  name: 'ingest-500',
  async run({ fixture }) {
    const product = await fixture.product(BATCHES.database);
    const { warehouse } = product;
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
    return withPlainWorker(fixture, product, async (plainRate) => {
      const peers = [
        { name: 'bare insert of such rows, same format', rate: insertRate, wanted: 0.4 },
        { name: 'a plain worker', rate: plainRate, wanted: 1.5 },
      ];
      const figures = await queueToDurable(fixture, BATCHES, peers);
      return [...figures, ...bare.figures('a million rows of the bare insert', MILLION)];
    });
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

/** Runs the plain worker on the same servers, with a queue of its own. */
function withPlainWorker<T>(
  fixture: Fixture,
  { warehouse, env }: Product,
  work: (rate: () => Promise<number>) => Promise<T>,
): Promise<T> {
  const { jobs, eventsPerJob } = BATCHES;
  return fixture.withQueue('plain', async (queue) => {
    await execute(warehouse, PLAIN_TABLE);
    const { CLICKHOUSE_URL: url, CLICKHOUSE_USER: username, CLICKHOUSE_PASSWORD: password } = env;
    const clickhouse = JSON.stringify({ url, username, password, database: env.CLICKHOUSE_DATABASE });
    return fixture.withPeer(['plain', 'plain', clickhouse], () => work(() => drainRate(queue, jobs, eventsPerJob)));
  });
}

export const ingestSingles: Bench = {
  name: 'ingest-1',
  async run({ fixture }) {
    return fixture.withQueue('idle', (idle) =>
      fixture.withPeer(['idle', 'idle', CONCURRENCY], () => {
        const idleRate = () => drainRate(idle, SINGLES.jobs, 1);
        return queueToDurable(fixture, SINGLES, [
          { name: 'BullMQ worker that does nothing', rate: idleRate, wanted: 0.6 },
        ]);
      }),
    );
  },
};

interface Peer {
  readonly name: string;
  /** Events per second. */
  readonly rate: () => Promise<number>;
  /** The goal, as a share of that rate. */
  readonly wanted: number;
}

/** Measures the worker and its peers in turn. */
function queueToDurable(
  fixture: Fixture,
  { database, jobs, eventsPerJob }: typeof BATCHES,
  peers: readonly Peer[],
): Promise<Figure[]> {
  return fixture.withProduct(database, (product) =>
    fixture.withIngest(product, async ({ pid }) => {
      const spent = new ProcessorTimes({ 'the worker': pid, ...fixture.serverPids });
      const timed = (work: () => Promise<void>) => spent.of(jobs * eventsPerJob, work);
      const drain = () => drainRate(product.queue, jobs, eventsPerJob, timed);
      const [rates = [], ...peerRates] = await measureInTurn([drain, ...peers.map(({ rate }) => rate)], {
        runs: DRAINS,
      });
      const what = `jobs of ${eventsPerJob} events, queue to durable`;
      return [
        ...peers.map(({ name, wanted }, index) => {
          const peer = median(peerRates[index] ?? []);
          return figure(what, 'events/s', rates, { beside: { [name]: peer }, goal: ratio('≥', wanted, peer) });
        }),
        ...spent.figures('a million events', MILLION),
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
