/** An hour of ten million events: how long sealing it takes, how much memory, and what is left for a worker meanwhile. */
import { QUEUE_PREFIX } from '@meterline/catalog';
import type { Warehouse } from '@meterline/warehouse';
import type { BenchContext } from './bench.js';
import { atLeast, type Figure, median } from './figure.js';
import { processorMs } from './machine.js';
import { accountsOf, fill, HOUR, MemorySamples, sealHour } from './sealing-hour.js';
import { drainRate } from './usage-queue.js';

/** Of `--events`: ten million by default. */
const SHARE_OF_EVENTS = 2;
const GOAL_MS = 60_000;
const GOAL_MB = 1_000;
const GOAL_SHARE = 0.8;
const DATABASE = 'sealing_large';
const JOBS = 100;
const EVENTS_PER_JOB = 500;
/** With rates of the worker alone before, between and after them. */
const SEALINGS = 2;
const RATES_ALONE = 3;

export async function largeHour(context: BenchContext): Promise<Figure[]> {
  const { site, options } = context;
  const events = Math.ceil(options.events / SHARE_OF_EVENTS);
  const warehouse = await site.warehouse(DATABASE);
  try {
    const started = performance.now();
    await fill(warehouse, events, HOUR);
    site.say(`sealing: ${events} events inserted in ${Math.round(performance.now() - started)} ms`);
    return [await alone(context, warehouse, events), await besideIngest(context, warehouse, events)];
  } finally {
    await site.drop(DATABASE);
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
    bench: 'sealing',
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
  return site.withIngest({ CLICKHOUSE_DATABASE: DATABASE }, async () => {
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
      bench: 'sealing',
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
