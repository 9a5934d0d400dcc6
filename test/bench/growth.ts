/**
 * The same service as its data grow, from one million events to `--events`: a dashboard's queries, the worker's rate into a table of that
 * size, how fast events are stored and sealed at the beginning and at the end, and memory. The data sets have the same groups.
 */
import { residentMiB } from '../harness/programs.js';
import { select } from '../harness/stack.js';
import { type Corpus, LARGE_ACCOUNT, loadCorpus } from './corpus.js';
import { CORPUS, RUNS, withApi } from './dashboard.js';
import { atLeast, atMost, type Figure, figure, measure, median, type Unit, WARM_UP_MS } from './figure.js';
import type { Bench, BenchContext } from './fixture.js';
import { metricsPath, QUERIES } from './queries.js';
import { drainRate } from './traffic.js';

/** The numbers of events that are measured, besides `--events`, if that is more. */
const SIZES = [1_000_000, 20_000_000] as const;
const MAX_GROWTH = 1.3;
const MIN_RATE = 0.9;
const JOBS = 1_200;
const EVENTS_PER_JOB = 500;

interface Measured {
  readonly events: number;
  readonly corpus: Corpus;
  /** Milliseconds of the runs of each query. */
  readonly times: readonly (readonly number[])[];
  /** Events a second of a worker. */
  readonly rates: readonly number[];
  /** On disk, for each event. */
  readonly bytes: number;
  /** The most resident memory of each process so far, in MB. */
  readonly memory: Readonly<Record<string, number>>;
}

export const growth: Bench = {
  name: 'growth',
  async run(context) {
    const { fixture, events: most } = context;
    const measured: Measured[] = [];
    for (const events of SIZES.filter((size) => size < most)) {
      measured.push(await measureSize(context, `growth_${events}`, events));
      await fixture.drop(`growth_${events}`);
    }
    measured.push(await measureSize(context, CORPUS, most));
    return figures(measured);
  },
};

async function measureSize(context: BenchContext, database: string, events: number): Promise<Measured> {
  const { fixture } = context;
  const corpus = await loadCorpus(context, database, events);
  const product = await fixture.product(database);
  const memory: Record<string, number> = {};
  const noteMemory = (name: string, pid: number) => {
    memory[name] = residentMiB(pid, 'VmHWM') ?? 0;
  };
  const [stored] = await select<{ bytes: number }>(corpus.warehouse, BYTES_PER_EVENT);
  const times = await withApi(context, product, async (as, pid) => {
    const ask = await as(LARGE_ACCOUNT);
    const runs: number[][] = [];
    for (const query of QUERIES) {
      runs.push(await measure(() => ask(metricsPath(LARGE_ACCOUNT, query)), RUNS, WARM_UP_MS));
    }
    noteMemory('the query service', pid);
    return runs;
  });
  const rates = await fixture.withIngest(product, async ({ pid }) => {
    const drained = await measure(() => drainRate(product.queue, JOBS, EVENTS_PER_JOB));
    noteMemory('the worker', pid);
    return drained;
  });
  for (const [name, pid] of Object.entries(fixture.serverPids)) noteMemory(name, pid);
  return { events, corpus, times, rates, bytes: stored?.bytes ?? 0, memory };
}

const BYTES_PER_EVENT = `
SELECT sum(bytes_on_disk) / sum(rows) AS bytes
FROM system.parts WHERE active AND database = currentDatabase() AND table = 'usage_events'`;

function figures(measured: readonly Measured[]): Figure[] {
  const [smallest, largest] = [measured.at(0), measured.at(-1)];
  if (!smallest || !largest) return [];
  type Goal = (wanted: number, of: number) => (value: number) => { text: string; met: boolean };
  /** The median of the runs at the largest size, beside those at the others. */
  const grown = (what: string, unit: Unit, of: (size: Measured) => readonly number[], goal?: Goal, wanted = 1) =>
    figure(`${what}, at ${millions(largest.events)}`, unit, of(largest), {
      beside: measured
        .slice(0, -1)
        .map((size) => ({ what: `at ${millions(size.events)}`, value: median(of(size)), unit })),
      ...(goal && { goal: goal(wanted, median(of(smallest))) }),
    });
  const pace = (what: string, of: 'storing' | 'sealing'): Figure => {
    const { first, last } = largest.corpus[of];
    return figure(`${what}, the last tenth of ${millions(largest.events)}`, 'events/s', [last], {
      beside: [{ what: 'the first tenth', value: first, unit: 'events/s' }],
      goal: atLeast(MIN_RATE, first),
    });
  };
  return [
    ...QUERIES.map(({ title }, index) => grown(title, 'ms', ({ times }) => times[index] ?? [], atMost, MAX_GROWTH)),
    grown('jobs of 500 events, queue to durable', 'events/s', ({ rates }) => rates, atLeast, MIN_RATE),
    pace('stored in the engine', 'storing'),
    pace('sealed', 'sealing'),
    grown('an event on disk', 'bytes', ({ bytes }) => [bytes]),
    ...Object.keys(largest.memory).map((name) =>
      grown(`most memory of ${name}`, 'MB', ({ memory }) => [memory[name] ?? 0]),
    ),
  ];
}

function millions(events: number): string {
  return `${(events / 1e6).toLocaleString('en', { maximumFractionDigits: 2 })} M`;
}
