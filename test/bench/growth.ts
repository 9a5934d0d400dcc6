/**
 * The same service as its data grow, from one million events to `--events`: a dashboard's queries, the worker's rate into a table of that
 * size, how fast events are stored and sealed at the beginning and at the end, and memory. The data sets have the same groups.
 */
import { residentMiB } from '../harness/programs.js';
import { select } from '../harness/stack.js';
import { LARGE_ACCOUNT, loadCorpus, metricsPath, QUERIES } from './corpus.js';
import { CORPUS, RUNS, withApi } from './dashboard.js';
import { type Figure, figure, measure, median, ratio, type Unit, WARM_UP_MS } from './figure.js';
import type { Bench, BenchContext } from './fixture.js';
import { drainRate } from './traffic.js';

/** The numbers of events that are measured, besides `--events`, if that is more. */
const SIZES = [1_000_000, 20_000_000] as const;

/** Measured at each size. */
interface Grown {
  readonly what: string;
  readonly unit: Unit;
  readonly runs: readonly number[];
  /** How the largest size compares with the smallest. */
  readonly goal?: readonly [sign: '≤' | '≥', ratio: number];
}

export const growth: Bench = {
  name: 'growth',
  async run(context) {
    const { fixture, events: most } = context;
    const smaller: { readonly at: string; readonly grown: readonly Grown[] }[] = [];
    for (const events of SIZES.filter((size) => size < most)) {
      const database = `growth_${events}`;
      const { grown } = await fixture.withProduct(database, () => measureSize(context, database, events));
      smaller.push({ at: `at ${millions(events)}`, grown });
    }
    const { grown, paces } = await measureSize(context, CORPUS, most);
    const figures = grown.map(({ what, unit, runs, goal }, index) => {
      const values = smaller.map(({ at, grown: others }) => [at, median(others[index]?.runs ?? [])] as const);
      const [, smallest] = values[0] ?? ['', median(runs)];
      return figure(`${what}, at ${millions(most)}`, unit, runs, {
        beside: Object.fromEntries(values),
        goal: goal && ratio(...goal, smallest),
      });
    });
    return [...figures, ...paces];
  },
};

async function measureSize(
  context: BenchContext,
  database: string,
  events: number,
): Promise<{ grown: Grown[]; paces: Figure[] }> {
  const { fixture } = context;
  const { warehouse, storing, sealing } = await loadCorpus(context, database, events);
  const product = await fixture.product(database);
  const [stored] = await select<{ bytes: number }>(warehouse, BYTES_PER_EVENT);
  const memory: Grown[] = [];
  const noteMemory = (name: string, pid: number) =>
    memory.push({ what: `most memory of ${name}`, unit: 'MB', runs: [residentMiB(pid, 'VmHWM') ?? 0] });
  const queries = await withApi(context, product, async (as, pid) => {
    const ask = await as(LARGE_ACCOUNT);
    const grown: Grown[] = [];
    for (const query of QUERIES) {
      const path = metricsPath(LARGE_ACCOUNT, query);
      const runs = await measure(() => ask(path), { runs: RUNS, warmUpMs: WARM_UP_MS });
      grown.push({ what: query.title, unit: 'ms', runs, goal: ['≤', 1.3] });
    }
    noteMemory('the query service', pid);
    return grown;
  });
  const rates = await fixture.withIngest(product, async ({ pid }) => {
    const runs = await measure(() => drainRate(product.queue, 1_200, 500));
    noteMemory('the worker', pid);
    return runs;
  });
  for (const [name, pid] of Object.entries(fixture.serverPids)) noteMemory(name, pid);
  const pace = (what: string, { first, last }: typeof storing) =>
    figure(`${what}, the last tenth of ${millions(events)}`, 'events/s', [last], {
      beside: { 'the first tenth': first },
      goal: ratio('≥', 0.9, first),
    });
  return {
    grown: [
      ...queries,
      { what: 'jobs of 500 events, queue to durable', unit: 'events/s', runs: rates, goal: ['≥', 0.9] },
      { what: 'an event on disk', unit: 'bytes', runs: [stored?.bytes ?? 0] },
      ...memory,
    ],
    paces: [pace('stored in the engine', storing), pace('sealed', sealing)],
  };
}

const BYTES_PER_EVENT = `
SELECT sum(bytes_on_disk) / sum(rows) AS bytes
FROM system.parts WHERE active AND database = currentDatabase() AND table = 'usage_events'`;

function millions(events: number): string {
  return `${(events / 1e6).toLocaleString('en', { maximumFractionDigits: 2 })} M`;
}
