/**
 * Sealing one hour: as it grows, in a month that holds many other hours, and a large one: how long it takes, how much memory, and what is
 * left for a worker meanwhile.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_HOUR, QUEUE_PREFIX } from '@meterline/catalog';
import { raiseWatermarks, sealNext, type Warehouse } from '@meterline/warehouse';
import { execute, select } from '../harness/stack.js';
import type { Bench, BenchContext } from './bench.js';
import { atLeast, atMost, type Figure, median } from './figure.js';
import { processorMs } from './machine.js';
import { measure } from './measure.js';
import { drainRate } from './usage-queue.js';

/** Of `--events`, and no more than one million. */
const SHARE_OF_EVENTS = 20;
const RUNS = 3;
/** The other hours of the same month that are sealed already, and have as many events each. */
const OTHER_HOURS = 12;

export const sealing: Bench = {
  name: 'sealing',
  async run(context) {
    const events = Math.min(1_000_000, Math.ceil(context.options.events / SHARE_OF_EVENTS));
    const quarter = Math.ceil(events / 4);
    const small = await sealed(context, quarter, 0);
    const among = await sealed(context, quarter, OTHER_HOURS);
    const large = await sealed(context, events, 0);
    const growth = median(large.times) / median(small.times);
    const neighbours = median(among.times) / median(small.times);
    const ms = (what: string, { times }: Sealed) => ({ what, value: median(times), unit: 'ms' }) as const;
    return [
      {
        what: `an hour of ${count(events)} events in ${count(accountsOf(events))} accounts`,
        value: median(large.times),
        unit: 'ms',
        runs: large.times,
        beside: [
          ms(`of ${count(quarter)}`, small),
          { what: 'memory of its statements', value: large.memory, unit: 'MB' },
        ],
        // Linear is 4.
        reach: atMost(growth, 5),
      },
      {
        what: `an hour of ${count(quarter)} events, after ${OTHER_HOURS} others of its month`,
        value: median(among.times),
        unit: 'ms',
        runs: among.times,
        beside: [ms('alone in its month', small)],
        reach: atMost(neighbours, 1.5),
      },
      ...(await largeHour(context)),
    ];
  },
};

interface Sealed {
  readonly times: readonly number[];
  /** The most that the statements of one run had at once, sampled. */
  readonly memory: number;
}

/** An hour in a database of its own, sealed several times. */
async function sealed({ site, signal }: BenchContext, events: number, otherHours: number): Promise<Sealed> {
  const database = `sealing_${events}_${otherHours}`;
  const warehouse = await site.warehouse(database);
  try {
    for (let hour = otherHours; hour >= 0; hour -= 1) await fill(warehouse, events, HOUR - hour * MS_PER_HOUR);
    await execute(warehouse, 'OPTIMIZE TABLE usage_events FINAL');
    const memory = new MemorySamples(warehouse);
    const times = await measure(async () => {
      signal.throwIfAborted();
      return sealHour(warehouse);
    }, RUNS);
    return { times, memory: await memory.stop() };
  } finally {
    await site.drop(database);
  }
}

function count(number: number): string {
  return number.toLocaleString('en');
}

/** Of `--events`, and no more than ten million. */
const LARGE_SHARE = 2;
const MOST_EVENTS = 10_000_000;
const GOAL_MS = 60_000;
const GOAL_MB = 1_000;
const GOAL_SHARE = 0.8;
const LARGE_DATABASE = 'sealing_large';
const JOBS = 100;
const EVENTS_PER_JOB = 500;
/** With rates of the worker alone before, between and after them. */
const SEALINGS = 2;
const RATES_ALONE = 3;

async function largeHour(context: BenchContext): Promise<Figure[]> {
  const { site, options } = context;
  const events = Math.min(MOST_EVENTS, Math.ceil(options.events / LARGE_SHARE));
  const warehouse = await site.warehouse(LARGE_DATABASE);
  try {
    const started = performance.now();
    await fill(warehouse, events, HOUR);
    site.say(`sealing: ${events} events inserted in ${Math.round(performance.now() - started)} ms`);
    return [await alone(context, warehouse, events), await besideIngest(context, warehouse, events)];
  } finally {
    await site.drop(LARGE_DATABASE);
  }
}

async function alone({ site }: BenchContext, warehouse: Warehouse, events: number): Promise<Figure> {
  const { pid } = site.clickhouse;
  const memory = new MemorySamples(warehouse);
  const before = processorMs(pid) ?? 0;
  const value = await sealHour(warehouse);
  const processor = (processorMs(pid) ?? 0) - before;
  const megabytes = await memory.stop();
  return {
    what: `an hour of ${events.toLocaleString('en')} events in ${accountsOf(events).toLocaleString('en')} accounts`,
    value,
    unit: 'ms',
    beside: [
      { what: 'processor time of ClickHouse', value: processor, unit: 'ms' },
      { what: 'memory of its statements', value: megabytes, unit: 'MB' },
    ],
    reach: {
      text: `≤ ${GOAL_MS.toLocaleString('en')} ms and ${GOAL_MB.toLocaleString('en')} MB`,
      met: value <= GOAL_MS && megabytes <= GOAL_MB,
    },
  };
}

/** The worker's rates while the hour is sealed, and when it is not. Jobs are added in between, while the worker waits. */
async function besideIngest({ site, signal }: BenchContext, warehouse: Warehouse, events: number): Promise<Figure> {
  const queue = site.queue(QUEUE_PREFIX);
  return site.withIngest({ CLICKHOUSE_DATABASE: LARGE_DATABASE }, async () => {
    const rate = async () => {
      signal.throwIfAborted();
      return EVENTS_PER_JOB * (await drainRate(queue, JOBS, EVENTS_PER_JOB));
    };
    await rate();
    const [free, beside, sealings]: readonly [number[], number[], number[]] = [[], [], []];
    const measureFree = async () => {
      for (let run = 0; run < RATES_ALONE; run += 1) free.push(await rate());
    };
    await measureFree();
    for (let run = 0; run < SEALINGS; run += 1) {
      sealings.push(await ratesDuring(sealHour(warehouse), rate, beside));
      await measureFree();
    }
    return {
      what: `ingest of jobs of ${EVENTS_PER_JOB} events while an hour of ${events.toLocaleString('en')} is sealed`,
      value: median(beside),
      unit: 'events/s',
      runs: beside,
      beside: [
        { what: 'alone', value: median(free), unit: 'events/s' },
        { what: 'the sealing', value: median(sealings), unit: 'ms' },
      ],
      reach: atLeast(median(beside) / median(free), GOAL_SHARE),
    };
  });
}

/** Adds to the rates those that end before the work does, and the first in any case. @returns what the work returns */
async function ratesDuring(work: Promise<number>, rate: () => Promise<number>, rates: number[]): Promise<number> {
  let isOver = false;
  const done = work.finally(() => {
    isOver = true;
  });
  const before = rates.length;
  while (!isOver) {
    const measured = await rate();
    if (!isOver || rates.length === before) rates.push(measured);
  }
  return done;
}

const HOUR: EpochMs = Date.UTC(2025, 9, 20, 12);

const EVENTS_PER_ACCOUNT = 1_000;
/** As many as measured of large accounts: an event in three is of a group of its own. */
const GROUPS_PER_ACCOUNT = 370;
const PART = 1_000_000;
const SAMPLE_MS = 50;

const FILL = `
INSERT INTO usage_events (account_id, event_id, timestamp, workspace, resource_type, resource_name, resource_uuid,
                          billing_dimension, usage, revision, voided, cost, price_revision, price_book)
WITH intDiv(number, {accounts: UInt32}) % ${GROUPS_PER_ACCOUNT} AS box
SELECT concat('account-', leftPad(toString(number % {accounts: UInt32}), 6, '0')), generateUUIDv7(),
       toDateTime64({hour: UInt32}, 3, 'UTC') + number % 3600, 'production', 'sandbox', concat('sandbox-', toString(box % 50)),
       toString(reinterpretAsUUID(sipHash128(box, number % {accounts: UInt32}))), 'sandbox_compute_runtime_gbs',
       number % 977, 0, false, number % 977 * 0.0000115, 0, 0
FROM numbers({first: UInt32}, {events: UInt32})
SETTINGS max_memory_usage = 0`;

function accountsOf(events: number): number {
  return Math.ceil(events / EVENTS_PER_ACCOUNT);
}

/** In parts, as one statement would hold all its names at once. */
async function fill(warehouse: Warehouse, events: number, hour: EpochMs): Promise<void> {
  for (let first = 0; first < events; first += PART) {
    const part = { first, events: Math.min(PART, events - first) };
    await execute(warehouse, FILL, { ...part, hour: hour / 1000, accounts: accountsOf(events) });
  }
}

/** Watermarks never fall, so they are removed first. @returns how long it took, in milliseconds */
async function sealHour(warehouse: Warehouse): Promise<number> {
  for (const table of ['rollup_watermarks', 'usage_hourly']) await execute(warehouse, `TRUNCATE TABLE ${table}`);
  await raiseWatermarks([warehouse], 'hourly', { sealingUntil: HOUR, sealedUntil: HOUR });
  const started = performance.now();
  await sealNext([warehouse], HOUR + MS_PER_HOUR);
  return performance.now() - started;
}

/** What the statements of a database have at once, sampled; nothing but sealing runs there. */
class MemorySamples {
  readonly #sampling: Promise<void>;
  #isOver = false;
  #highest = 0;

  constructor(warehouse: Warehouse) {
    this.#sampling = this.#sample(warehouse);
  }

  /** @returns the most so far, in MB */
  async stop(): Promise<number> {
    this.#isOver = true;
    await this.#sampling;
    return this.#highest / 1e6;
  }

  async #sample(warehouse: Warehouse): Promise<void> {
    const query = `SELECT sum(memory_usage) AS bytes FROM system.processes
      WHERE current_database = currentDatabase() AND query NOT LIKE '%system.processes%'`;
    while (!this.#isOver) {
      const [row] = await select<{ bytes: string }>(warehouse, query);
      this.#highest = Math.max(this.#highest, Number(row?.bytes ?? 0));
      await delay(SAMPLE_MS);
    }
  }
}
