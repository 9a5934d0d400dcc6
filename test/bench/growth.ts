/** The same requests on more events of the same groups. */
import type { Bench, BenchContext } from './bench.js';
import { loadCorpus, settle } from './corpus.js';
import { askApi, CORPUS, largeCorpus } from './dashboard.js';
import { median } from './figure.js';
import { HttpClient } from './http-client.js';
import { measure, WARM_UP_MS } from './measure.js';
import { QUESTIONS } from './questions.js';

/** Shares of the large data set: 1, 5 and 20 million by default. */
const SHARES = [0.05, 0.25] as const;
const RUNS = 25;
const MAX_GROWTH = 2;

export const growth: Bench = {
  name: 'growth',
  async run(context) {
    const { site, options } = context;
    const sizes: number[] = [];
    const times: number[][][] = [];
    for (const share of SHARES) {
      const events = Math.round(options.events * share);
      site.say(`loading ${events.toLocaleString('en')} events`);
      const database = `growth_${sizes.length}`;
      await settle(await loadCorpus(site, database, events), site.say);
      sizes.push(events);
      times.push(await askAll(context, database));
      await site.drop(database);
    }
    await largeCorpus(site, options.events);
    sizes.push(options.events);
    times.push(await askAll(context, CORPUS));
    return QUESTIONS.map((question, index) => {
      const medians = times.map((ofSize) => median(ofSize[index] ?? []));
      const [smallest = 0] = medians;
      const value = medians.at(-1) ?? 0;
      const limit = MAX_GROWTH * smallest;
      return {
        bench: 'growth',
        what: `${question.title}, at ${millions(sizes.at(-1))}`,
        value,
        unit: 'ms',
        runs: times.at(-1)?.[index] ?? [],
        beside: medians.slice(0, -1).map((value, size) => ({ what: `at ${millions(sizes[size])}`, value, unit: 'ms' })),
        reach: { text: `${(value / smallest).toFixed(2)}× of ≤ ${MAX_GROWTH}×`, met: value <= limit },
      };
    });
  },
};

/** @returns the runs of each question */
async function askAll({ site, signal }: BenchContext, database: string): Promise<number[][]> {
  const http = new HttpClient();
  try {
    return await site.withQuery(database, async ({ url }) => {
      const api = await askApi(site, url, http);
      const runs: number[][] = [];
      for (const question of QUESTIONS) {
        signal.throwIfAborted();
        runs.push(await measure(() => api(question), RUNS, WARM_UP_MS));
      }
      return runs;
    });
  } finally {
    http.close();
  }
}

function millions(events = 0): string {
  return `${(events / 1e6).toLocaleString('en', { maximumFractionDigits: 2 })} M`;
}
