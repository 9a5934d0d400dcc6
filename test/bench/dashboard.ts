/**
 * A dashboard's queries to the API, compared in turn with the same by hand, through the same client, and with the events alone.
 */
import { NO_ROLLUPS, readMetrics, type Warehouse } from '@meterline/warehouse';
import type { Bench, BenchContext } from './bench.js';
import { LARGE_ACCOUNT, loadCorpus } from './corpus.js';
import { type Figure, median } from './figure.js';
import { askByHand } from './hand-written.js';
import { checked, HttpClient } from './http-client.js';
import { measure, measureInTurn, WARM_UP_MS } from './measure.js';
import { metricsPath, QUESTIONS, type Question } from './questions.js';
import type { Site } from './site.js';

export const CORPUS = 'corpus';
/** Fast requests run more often, because their medians differ only by milliseconds. */
const RUNS = 25;
const SLOW_RUNS = 5;

/** Loads the large data set when the run does not have it yet. */
export async function largeCorpus(context: BenchContext): Promise<Warehouse> {
  const { site, options } = context;
  if (!site.loaded.has(CORPUS)) await loadCorpus(context, CORPUS, options.events);
  site.loaded.add(CORPUS);
  return site.warehouse(CORPUS);
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
    const { site } = context;
    const warehouse = await largeCorpus(context);
    const http = new HttpClient();
    try {
      return await site.withQuery(CORPUS, async ({ url }) => {
        const api = await askApi(site, url, http);
        const figures: Figure[] = [];
        for (const question of QUESTIONS) {
          context.signal.throwIfAborted();
          site.say(`  ${question.title}`);
          figures.push(await compare(warehouse, question, api));
        }
        return figures;
      });
    } finally {
      http.close();
    }
  },
};

async function compare(warehouse: Warehouse, question: Question, api: Ask): Promise<Figure> {
  const [runs, handRuns] = await measureInTurn(
    () => api(question),
    () => askByHand(warehouse, question),
    { runs: RUNS, warmUpMs: WARM_UP_MS },
  );
  const truth = await measure(() => askTruth(warehouse, question), SLOW_RUNS);
  const [value, hand] = [median(runs), median(handRuns)];
  const limit = 1.3 * hand + 10;
  return {
    what: question.title,
    value,
    unit: 'ms',
    runs,
    beside: [
      { what: '(a) by hand', value: hand, unit: 'ms' },
      { what: '(b) from the events', value: median(truth), unit: 'ms' },
    ],
    reach: { text: `≤ ${limit.toFixed(1)} ms = 1.3 (a) + 10`, met: value <= limit },
  };
}

async function askTruth(warehouse: Warehouse, { window, resolution, groupBy }: Question): Promise<number> {
  const started = performance.now();
  const question = { accountId: LARGE_ACCOUNT, window, resolution, groupBy, filters: {}, limit: 100 };
  await readMetrics(warehouse, { ...question, rollups: NO_ROLLUPS });
  return performance.now() - started;
}
