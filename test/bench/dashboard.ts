/** A dashboard's requests to the API, compared with three other ways to answer them in the same run. */
import { NO_CELLS, readMetrics, type Warehouse } from '@meterline/warehouse';
import type { HttpProcess } from '../services.js';
import type { Bench, BenchContext } from './bench.js';
import { LARGE_ACCOUNT, loadCorpus, settle } from './corpus.js';
import { atLeast, type Figure, median, type Peer } from './figure.js';
import { askByHand } from './hand-written.js';
import { BareClickHouse, checked, HttpClient } from './http-client.js';
import { measure, measureInTurn, WARM_UP_MS } from './measure.js';
import { askOpenMeter, loadOpenMeter } from './open-meter.js';
import { metricsPath, QUESTIONS, type Question } from './questions.js';
import { KEEPING_ANSWERS, type Site } from './site.js';

export const CORPUS = 'corpus';
const OPEN_METER_EVENTS = 5_000_000;
/** How many times faster than OpenMeter's way an answer should be. */
const OPEN_METER_GOAL = 100;
/** Fast requests run more often, because their medians differ only by milliseconds. */
const RUNS = 25;
const SLOW_RUNS = 5;

/** Loads the large data set when the run does not have it yet. */
export async function largeCorpus(site: Site, events: number): Promise<Warehouse> {
  if (site.loaded.has(CORPUS)) return site.warehouse(CORPUS);
  site.say(`loading ${events.toLocaleString('en')} events`);
  const warehouse = await loadCorpus(site, CORPUS, events);
  await settle(warehouse, site.say);
  site.loaded.add(CORPUS);
  return warehouse;
}

/** Sends the request to the API and resolves with the milliseconds until the answer. */
type Ask = (question: Question) => Promise<number>;

export async function askApi(site: Site, url: string, http: HttpClient): Promise<Ask> {
  const key = await site.createKey(LARGE_ACCOUNT, `bench-${crypto.randomUUID()}`);
  return async (question) => {
    const path = metricsPath(LARGE_ACCOUNT, question);
    return checked(await http.send(`${url}${path}`, { authorization: `Bearer ${key}` })).ms;
  };
}

export const dashboard: Bench = {
  name: 'dashboard',
  async run(context) {
    const { site, options } = context;
    const warehouse = await largeCorpus(site, options.events);
    const share = Math.min(1, OPEN_METER_EVENTS / options.events);
    site.say('copying events to the schema of OpenMeter');
    const copied = await loadOpenMeter(warehouse, share);
    const http = new HttpClient();
    const clickhouse = new BareClickHouse(site.clickhouse, CORPUS);
    try {
      const compareAll = async (computing: HttpProcess, keeping: HttpProcess) => {
        const computed = await askApi(site, computing.url, http);
        const kept = await askApi(site, keeping.url, http);
        const figures: Figure[] = [];
        for (const question of QUESTIONS) {
          site.say(`  ${question.title}`);
          const asked = { context, warehouse, clickhouse, question, scale: options.events / copied };
          figures.push(...(await compare(asked, computed, kept)));
        }
        return figures;
      };
      return await site.withQuery(CORPUS, (computing) =>
        site.withQuery(CORPUS, (keeping) => compareAll(computing, keeping), KEEPING_ANSWERS),
      );
    } finally {
      clickhouse.close();
      http.close();
    }
  },
};

interface Comparison {
  readonly context: BenchContext;
  readonly warehouse: Warehouse;
  readonly clickhouse: BareClickHouse;
  readonly question: Question;
  /** How many times more events the API's answer includes than OpenMeter's. */
  readonly scale: number;
}

async function compare(
  { context, warehouse, clickhouse, question, scale }: Comparison,
  computed: Ask,
  kept: Ask,
): Promise<Figure[]> {
  const [runs, handRuns] = await measureInTurn(
    () => computed(question),
    () => askByHand(clickhouse, question),
    {
      runs: RUNS,
      warmUpMs: WARM_UP_MS,
    },
  );
  context.signal.throwIfAborted();
  const truth = await measure(() => askTruth(warehouse, question), SLOW_RUNS);
  const value = median(runs);
  const hand = median(handRuns);
  const limit = 1.3 * hand + 3;
  const beside: Peer[] = [
    { what: '(a) by hand', value: hand, unit: 'ms' },
    { what: '(b) truth', value: median(truth), unit: 'ms' },
  ];
  const dashboardFigure: Figure = {
    bench: 'dashboard',
    what: question.title,
    value,
    unit: 'ms',
    runs,
    beside,
    reach: { text: `≤ ${limit.toFixed(1)} ms = 1.3 (a) + 3`, met: value <= limit },
  };
  if (question.hasPages) return [dashboardFigure];
  context.signal.throwIfAborted();
  const openMeter = median(await measure(() => askOpenMeter(clickhouse, question, 'float'), SLOW_RUNS));
  const keptValue = median(await measure(() => kept(question), RUNS, WARM_UP_MS));
  const note =
    scale > 1.01 ? `its copy holds 1/${scale.toFixed(1)} of the events; time × ${scale.toFixed(1)}` : 'all events';
  const overApi = (what: string, answer: number, beside: readonly Peer[]): Figure => {
    const times = (openMeter * scale) / answer;
    const reach = atLeast(times, OPEN_METER_GOAL);
    return { bench: 'dashboard', what: `${question.title}: ${what}`, value: times, unit: '×', beside, reach, note };
  };
  const float: Peer = { what: '(c) OpenMeter, float', value: openMeter, unit: 'ms' };
  const decimal = question === QUESTIONS[0] ? await decimalPeer(clickhouse, question) : [];
  return [
    dashboardFigure,
    overApi('OpenMeter over an answer that is computed', value, [float, ...decimal]),
    overApi('OpenMeter over one that is kept', keptValue, [{ what: 'kept', value: keptValue, unit: 'ms' }]),
  ];
}

/** OpenMeter's other way to read a value; measured for one request only. */
async function decimalPeer(clickhouse: BareClickHouse, question: Question): Promise<Peer[]> {
  const value = median(await measure(() => askOpenMeter(clickhouse, question, 'decimal'), SLOW_RUNS));
  return [{ what: '(c) OpenMeter, decimal', value, unit: 'ms' }];
}

async function askTruth(warehouse: Warehouse, { window, resolution, groupBy }: Question): Promise<number> {
  const started = performance.now();
  const question = { accountId: LARGE_ACCOUNT, window, resolution, groupBy, filters: {}, limit: 100 };
  await readMetrics(warehouse, { ...question, cells: NO_CELLS });
  return performance.now() - started;
}
