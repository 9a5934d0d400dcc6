/** Many clients at once, while events arrive at half the worker's maximum rate. */
import { QUEUE_PREFIX } from '@meterline/catalog';
import type { Bench, BenchContext } from './bench.js';
import { CORPUS, largeCorpus } from './dashboard.js';
import { type Figure, median, percentile } from './figure.js';
import { HttpClient } from './http-client.js';
import { metricsPath, QUESTIONS } from './questions.js';
import { drainRate } from './usage-queue.js';

const CLIENTS = 64;
const ROUNDS = 5;
const ROUND_MS = 8_000;
const WARM_UP_MS = 4_000;
/** The jobs that measure the worker's maximum rate on this data. */
const PROBE_JOBS = 200;
const EVENTS_PER_JOB = 500;
/** How often each of QUESTIONS occurs in the mix: mostly summaries, sometimes a long list. */
const MIX = [8, 6, 6, 2, 1, 7] as const;
/** Of ten clients, four look at the large account. */
const LARGE_CLIENTS = 0.4;

interface Round {
  readonly times: readonly number[];
  readonly errors: number;
  readonly seconds: number;
}

export const load: Bench = {
  name: 'load',
  async run(context) {
    const { site, options } = context;
    await largeCorpus(site, options.events);
    const queue = site.queue(QUEUE_PREFIX);
    return site.withIngest({ CLICKHOUSE_DATABASE: CORPUS }, async () => {
      await drainRate(queue, PROBE_JOBS, EVENTS_PER_JOB);
      const half = (EVENTS_PER_JOB * (await drainRate(queue, PROBE_JOBS, EVENTS_PER_JOB))) / 2;
      return site.withScript('./producer.ts', [site.redisUrl, QUEUE_PREFIX, String(Math.round(half))], () =>
        site.withQuery(CORPUS, async ({ url }) => figures(await underLoad(context, url), half)),
      );
    });
  },
};

function figures(rounds: readonly Round[], ingested: number): Figure[] {
  const p50s = rounds.map(({ times }) => median(times));
  const p99s = rounds.map(({ times }) => percentile(times, 0.99));
  const rates = rounds.map(({ times, seconds }) => times.length / seconds);
  const errors = rounds.reduce((sum, round) => sum + round.errors, 0);
  const beside = [{ what: 'ingest meanwhile', value: ingested, unit: 'events/s' }] as const;
  const what = (name: string) => `${CLIENTS} clients: ${name}`;
  return [
    { bench: 'load', what: what('answers'), value: median(rates), unit: 'requests/s', runs: rates, beside },
    { bench: 'load', what: what('p50'), value: median(p50s), unit: 'ms', runs: p50s },
    { bench: 'load', what: what('p99'), value: median(p99s), unit: 'ms', runs: p99s },
    {
      bench: 'load',
      what: what('answers other than 200'),
      value: errors,
      unit: 'errors',
      reach: { text: 'none', met: errors === 0 },
    },
  ];
}

async function underLoad({ site, signal }: BenchContext, url: string): Promise<Round[]> {
  const http = new HttpClient(CLIENTS);
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, async (_, index) => {
      const account = `account-${String(index < CLIENTS * LARGE_CLIENTS ? 0 : index).padStart(2, '0')}`;
      return { account, key: await site.createKey(account, `bench-load-${index}`) };
    }),
  );
  const round = async (milliseconds: number): Promise<Round> => {
    signal.throwIfAborted();
    const started = performance.now();
    const times: number[] = [];
    let errors = 0;
    await Promise.all(
      clients.map(async ({ account, key }, index) => {
        const path = questionMix(account, index);
        while (performance.now() - started < milliseconds) {
          const { status, ms } = await http.send(`${url}${path()}`, { authorization: `Bearer ${key}` });
          if (status === 200) times.push(ms);
          else errors += 1;
        }
      }),
    );
    return { times, errors, seconds: (performance.now() - started) / 1000 };
  };
  try {
    await round(WARM_UP_MS);
    const rounds: Round[] = [];
    for (let index = 0; index < ROUNDS; index += 1) rounds.push(await round(ROUND_MS));
    return rounds;
  } finally {
    http.close();
  }
}

/** @returns a function that gives a client's next request; every client begins at another place in the mix */
function questionMix(account: string, client: number): () => string {
  const paths = QUESTIONS.flatMap((question, index) =>
    Array.from({ length: MIX[index] ?? 1 }, () => metricsPath(account, question)),
  );
  let asked = client * 7;
  return () => {
    // 11 and the number of paths have no common factor, so that the kinds of requests alternate.
    asked += 11;
    return paths[asked % paths.length] ?? '';
  };
}
