/** A dashboard's queries to the API, compared in turn with the same by hand, through the same client. */
import type { Product } from '../harness/product.js';
import { LARGE_ACCOUNT, loadCorpus } from './corpus.js';
import { type Figure, measureInTurn, median, medianOf, WARM_UP_MS } from './figure.js';
import type { Bench, BenchContext } from './fixture.js';
import { HttpClient } from './http.js';
import { askByHand, metricsPath, QUERIES, type Query } from './queries.js';

export const CORPUS = 'corpus';
/** Fast requests run often, because their medians differ only by milliseconds. */
export const RUNS = 25;

/** Loads the large data set when the run does not have it yet. */
export async function largeCorpus(context: BenchContext): Promise<Product> {
  const { fixture, events } = context;
  if (!fixture.has(CORPUS)) await loadCorpus(context, CORPUS, events);
  return fixture.product(CORPUS);
}

/** Runs a query service, and gives what resolves with the milliseconds until the response about the large account. */
export function withApi<T>(
  { fixture, signal }: BenchContext,
  product: Product,
  work: (ask: (query: Query) => Promise<number>, pid: number) => Promise<T>,
): Promise<T> {
  return fixture.withQuery(product, async ({ url, pid }) => {
    const http = new HttpClient();
    const key = await product.key(LARGE_ACCOUNT, 'admin', crypto.randomUUID());
    const ask = async (query: Query) => {
      signal.throwIfAborted();
      return (await http.ok(`${url}${metricsPath(LARGE_ACCOUNT, query)}`, key)).ms;
    };
    return work(ask, pid).finally(() => http.close());
  });
}

export const dashboard: Bench = {
  name: 'dashboard',
  async run(context) {
    const product = await largeCorpus(context);
    return withApi(context, product, async (ask) => {
      const figures: Figure[] = [];
      for (const query of QUERIES) {
        const byHand = () => askByHand(product.warehouse, query);
        const [runs, handRuns] = await measureInTurn(() => ask(query), byHand, { runs: RUNS, warmUpMs: WARM_UP_MS });
        const value = median(handRuns);
        const limit = 1.3 * value + 10;
        figures.push({
          ...medianOf(query.title, 'ms', runs),
          beside: [{ what: 'by hand', value, unit: 'ms' }],
          reach: { text: `≤ ${limit.toFixed(1)} ms = 1.3 by hand + 10`, met: median(runs) <= limit },
        });
      }
      return figures;
    });
  },
};
