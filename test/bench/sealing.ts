/** Sealing one hour: as it grows, in a month that holds many other hours, and a large one while events arrive. */
import { MS_PER_HOUR } from '@meterline/catalog';
import { execute } from '../stack.js';
import type { Bench, BenchContext } from './bench.js';
import { atMost, median } from './figure.js';
import { measure } from './measure.js';
import { accountsOf, fill, HOUR, MemorySamples, sealHour } from './sealing-hour.js';
import { largeHour } from './sealing-large.js';

/** Of `--events`: one million by default. */
const SHARE_OF_EVENTS = 20;
const RUNS = 3;
/** The other hours of the same month that are sealed already, and have as many events each. */
const OTHER_HOURS = 12;

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
