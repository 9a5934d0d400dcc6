/** Sealing one hour: as it grows, in a month that holds many other hours, and while events arrive. */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_HOUR, QUEUE_PREFIX } from '@meterline/catalog';
import { raiseWatermarks, sealNext, type Warehouse } from '@meterline/warehouse';
import { execute, select } from '../stack.js';
import type { Bench, BenchContext } from './bench.js';
import { atMost, type Figure, median } from './figure.js';
import { measure, measureInTurn } from './measure.js';
import { drainRate } from './usage-queue.js';

/** Of `--events`: one million by default. */
const SHARE_OF_EVENTS = 20;
const EVENTS_PER_ACCOUNT = 1_000;
/** As many as measured of large accounts: an event in three is of a group of its own. */
const GROUPS_PER_ACCOUNT = 370;
const RUNS = 3;
const HOUR: EpochMs = Date.UTC(2025, 9, 20, 12);
/** The other hours of the same month that are sealed already, and have as many events each. */
const OTHER_HOURS = 12;
const SAMPLE_MS = 50;
const JOBS = 100;
const EVENTS_PER_JOB = 500;

const FILL = `
INSERT INTO usage_events (account_id, event_id, timestamp, workspace, resource_type, resource_name, resource_uuid,
                          billing_dimension, usage, revision, voided, cost, price_revision, price_book)
WITH intDiv(number, {accounts: UInt32}) % ${GROUPS_PER_ACCOUNT} AS box
SELECT concat('account-', leftPad(toString(number % {accounts: UInt32}), 6, '0')), generateUUIDv7(),
       toDateTime64({hour: UInt32}, 3, 'UTC') + number % 3600, 'production', 'sandbox', concat('sandbox-', toString(box % 50)),
       toString(reinterpretAsUUID(sipHash128(box, number % {accounts: UInt32}))), 'sandbox_compute_runtime_gbs',
       number % 977, 0, false, number % 977 * 0.0000115, 0, 0
FROM numbers({events: UInt32})
SETTINGS max_memory_usage = 0`;

export const sealing: Bench = {
  name: 'sealing',
  async run(context) {
    const events = Math.ceil(context.options.events / SHARE_OF_EVENTS);
    const quarter = Math.ceil(events / 4);
    const small = await sealed(context, quarter, 0);
    const among = await sealed(context, quarter, OTHER_HOURS);
    const large = await sealed(context, events, 0);
    const growth = median(large.times) / median(small.times);
    const neighbours = median(among.times) / median(small.times);
    const ms = (what: string, { times }: Sealed) => ({ what, value: median(times), unit: 'ms' }) as const;
    return [
      {
        bench: 'sealing',
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
        bench: 'sealing',
        what: `an hour of ${count(quarter)} events, after ${OTHER_HOURS} others of its month`,
        value: median(among.times),
        unit: 'ms',
        runs: among.times,
        beside: [ms('alone in its month', small)],
        reach: atMost(neighbours, 1.5),
      },
      await ingestMeanwhile(context, events),
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

function accountsOf(events: number): number {
  return Math.ceil(events / EVENTS_PER_ACCOUNT);
}

function fill(warehouse: Warehouse, events: number, hour: EpochMs): Promise<void> {
  return execute(warehouse, FILL, { hour: hour / 1000, events, accounts: accountsOf(events) });
}

/** Watermarks never fall, so they are removed first. @returns how long it took, in milliseconds */
async function sealHour(warehouse: Warehouse): Promise<number> {
  for (const table of ['rollup_seals', 'usage_hourly']) await execute(warehouse, `TRUNCATE TABLE ${table}`);
  await raiseWatermarks(warehouse, 'hourly', { sealingUntil: HOUR, sealedUntil: HOUR });
  const started = performance.now();
  await sealNext(warehouse, HOUR + MS_PER_HOUR);
  return performance.now() - started;
}

/** The worker's rate while the hour is sealed over and over, compared with the same worker alone. */
async function ingestMeanwhile({ site, signal }: BenchContext, events: number): Promise<Figure> {
  const database = 'sealing_ingest';
  const warehouse = await site.warehouse(database);
  const queue = site.queue(QUEUE_PREFIX);
  try {
    await fill(warehouse, events, HOUR);
    return await site.withIngest({ CLICKHOUSE_DATABASE: database }, async () => {
      const rate = async () => EVENTS_PER_JOB * (await drainRate(queue, JOBS, EVENTS_PER_JOB));
      const rateBesideSealing = async () => {
        const stop = new AbortController();
        const sealings = (async () => {
          while (!stop.signal.aborted && !signal.aborted) await sealHour(warehouse);
        })();
        const measured = await rate();
        stop.abort();
        await sealings;
        return measured;
      };
      const [alone, beside] = await measureInTurn(rate, rateBesideSealing);
      const share = median(beside) / median(alone);
      return {
        bench: 'sealing',
        what: 'ingest of jobs of 500 events while an hour is sealed',
        value: median(beside),
        unit: 'events/s',
        runs: beside,
        beside: [{ what: 'alone', value: median(alone), unit: 'events/s' }],
        reach: { text: `${share.toFixed(2)}× of ≥ 0.8×`, met: share >= 0.8 },
      };
    });
  } finally {
    await site.drop(database);
  }
}

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
    const query =
      "SELECT sum(memory_usage) AS bytes FROM system.processes WHERE query LIKE 'INSERT INTO usage_hourly%'";
    while (!this.#isOver) {
      const [row] = await select<{ bytes: string }>(warehouse, query);
      this.#highest = Math.max(this.#highest, Number(row?.bytes ?? 0));
      await delay(SAMPLE_MS);
    }
  }
}

function count(number: number): string {
  return number.toLocaleString('en');
}
