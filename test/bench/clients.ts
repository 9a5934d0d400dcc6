/**
 * Many clients at once: 64 while events come in, each query computed, and with `Cache-Control: max-age=10`, in turn; and one account's 64
 * greedy clients and another account's polite one: how long the polite one waits, alone and beside the others.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { MS_PER_DAY } from '@meterline/catalog';
import type { Product } from '../harness/product.js';
import { select } from '../harness/stack.js';
import { accountName, CORPUS_END, fillUsage, SANDBOX } from './corpus.js';
import { largeCorpus } from './dashboard.js';
import { type Figure, figure, limit, median, percentile, ratio } from './figure.js';
import type { Bench, BenchContext } from './fixture.js';
import { metricsPath, QUERIES } from './queries.js';
import { HttpClient } from './traffic.js';

const CLIENTS = 64;
/** Until code is compiled, and the greedy clients' account is known to keep the engine busy. */
const WARM_UP_MS = 4_000;
/** The share of the clients that look at the large account. */
const LARGE_CLIENTS = 0.4;
const ROUNDS = 5;
/** Events a second that come in: more would measure the producer, which runs on the same cores. */
const OFFERED = 19_000;
/** How often each of QUERIES occurs in the mix: mostly summaries, sometimes a long list. */
const MIX = [8, 6, 6, 2, 1, 7] as const;
/** What a caller sends who accepts a response that is ten seconds old. */
const CACHED = { 'cache-control': 'max-age=10' };

/** Asks again and again for this time. */
async function askFor(milliseconds: number, signal: AbortSignal, ask: () => Promise<unknown>): Promise<void> {
  for (const started = performance.now(); performance.now() - started < milliseconds; await ask())
    signal.throwIfAborted();
}

interface Round {
  readonly perSecond: number;
  readonly p99: number;
  readonly errors: number;
  /** Events a second that the worker stored meanwhile. */
  readonly stored: number;
}

export const load: Bench = {
  name: 'load',
  async run(context) {
    const { fixture } = context;
    const product = await largeCorpus(context);
    return fixture.withIngest(product, () =>
      fixture.withPeer([product.env.QUEUE_PREFIX ?? '', 'producer', OFFERED], () =>
        fixture.withQuery(product, async ({ url }) => {
          const http = new HttpClient(CLIENTS);
          const round = await roundOf(context, product, http, url);
          const [computed, cached]: [Round[], Round[]] = [[], []];
          await round({}, WARM_UP_MS);
          for (let index = 0; index < ROUNDS; index += 1) {
            computed.push(await round({}));
            cached.push(await round(CACHED));
          }
          http.close();
          return loadFigures(computed, cached);
        }),
      ),
    );
  },
};

/** Each client asks as soon as it has its response, which it takes compressed, as browsers and the client library do. */
async function roundOf({ signal }: BenchContext, product: Product, http: HttpClient, url: string) {
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, async (_, index) => {
      const account = accountName(index < CLIENTS * LARGE_CLIENTS ? 0 : index);
      const key = await product.key(account, 'admin', `client ${index}`);
      return { authorization: `Bearer ${key}`, path: queryMix(account, index) };
    }),
  );
  const stored = async () => {
    const events = 'SELECT toUInt32(count()) AS events FROM usage_events';
    return (await select<{ events: number }>(product.warehouse, events))[0]?.events ?? 0;
  };
  return async (headers: Readonly<Record<string, string>>, milliseconds = 8_000): Promise<Round> => {
    const [before, started] = [await stored(), performance.now()];
    const times: number[] = [];
    let errors = 0;
    const asking = clients.map(({ authorization, path }) =>
      askFor(milliseconds, signal, async () => {
        const response = await http.get(`${url}${path()}`, { ...headers, authorization, 'accept-encoding': 'gzip' });
        if (response.status === 200) times.push(response.ms);
        else errors += 1;
      }),
    );
    await Promise.all(asking);
    const seconds = (performance.now() - started) / 1000;
    const storedPerSecond = ((await stored()) - before) / seconds;
    return { perSecond: times.length / seconds, p99: percentile(times, 0.99), errors, stored: storedPerSecond };
  };
}

/** @returns a function that gives a client's next request; every client begins at another place in the mix */
function queryMix(account: string, client: number): () => string {
  const paths = QUERIES.flatMap((query, index) =>
    Array.from({ length: MIX[index] ?? 0 }, () => metricsPath(account, query)),
  );
  let requested = client * 7;
  return () => {
    // 11 and the number of paths have no common factor, so that the kinds of requests alternate.
    requested += 11;
    return paths[requested % paths.length] ?? '';
  };
}

function loadFigures(computed: readonly Round[], cached: readonly Round[]): Figure[] {
  const of = (rounds: readonly Round[], what: keyof Round) => rounds.map((round) => round[what]);
  const compared = (what: keyof Round) => ({ 'each computed': median(of(computed, what)) });
  const name = (what: string) => `${CLIENTS} clients with max-age=10: ${what}`;
  const errors = [...computed, ...cached].reduce((sum, round) => sum + round.errors, 0);
  return [
    figure(name('responses'), 'requests/s', of(cached, 'perSecond'), {
      ...{ beside: compared('perSecond'), goal: ratio('≥', 10, median(of(computed, 'perSecond'))) },
    }),
    figure(name('p99'), 'ms', of(cached, 'p99'), { beside: compared('p99'), goal: limit('≤', 1_000, 'ms') }),
    // Events that are in the queue or an insert at the end of a round are stored in the next.
    figure(name('stored meanwhile'), 'events/s', of(cached, 'stored'), {
      goal: limit('≥', OFFERED * 0.95, 'events/s'),
    }),
    figure('responses other than 200', 'errors', [errors], { goal: limit('≤', 0, 'errors') }),
  ];
}

const SPAN = 90 * MS_PER_DAY;
const ROUND_MS = 10_000;
/** Between two of the polite client's queries: it reads what it got. */
const POLITE_PAUSE_MS = 100;
const END = Math.floor(CORPUS_END / MS_PER_DAY) * MS_PER_DAY;
const QUERY = { window: { startTime: END - SPAN, endTime: END }, resolution: 'daily' } as const;
const GREEDY = { account: 'greedy', groups: 120_000, rows: 360_000 };
const GREEDY_GROUPS = ['resource_uuid', 'resource_name', 'billing_dimension'] as const;
const POLITE = { account: 'polite', groups: 300, rows: 100_000 };
/** Spread over the days and the groups, all with a cost. */
const USAGE = {
  at: '{start: Int64} + number * 7919000 % {span: Int64}',
  columns: {
    ...SANDBOX,
    account_id: '{account: String}',
    resource_name: "concat('sandbox-', toString(number % {groups: UInt32} % 1000))",
    resource_uuid: "concat('uuid-', toString(number % {groups: UInt32}))",
  },
};

/** What a client waits that was refused. */
const REFUSED_PAUSE_MS = 1_000;
/** Accounts with many heavy queries in flight, all of them at once, and a small query of another account. */
const TEN = { accounts: 10, inFlight: 110, groups: 10_000, rows: 60_000, days: 6 };

async function besideTenAccounts(
  product: Product,
  url: string,
  signal: AbortSignal,
  politely: (http: HttpClient) => Promise<number>,
): Promise<Figure> {
  const { accounts, inFlight, days, ...usage } = TEN;
  const http = new HttpClient(accounts * inFlight + 1);
  const window = { startTime: END - days * MS_PER_DAY, endTime: END };
  const query = { window, resolution: 'hourly', groupBy: GREEDY_GROUPS } as const;
  const greedy: { readonly path: string; readonly authorization: string }[] = [];
  for (let number = 0; number < accounts; number += 1) {
    const account = `greedy-${number}`;
    await fillUsage(product.warehouse, USAGE, { ...usage, account, start: window.startTime, span: days * MS_PER_DAY });
    const authorization = `Bearer ${await product.key(account)}`;
    greedy.push({ path: metricsPath(account, query), authorization });
  }
  const measureFor = async (milliseconds: number) => {
    const times: number[] = [];
    await askFor(milliseconds, signal, async () => {
      times.push(await politely(http));
      await delay(POLITE_PAUSE_MS);
    });
    return median(times);
  };
  await measureFor(WARM_UP_MS);
  const alone = await measureFor(ROUND_MS / 2);
  const askGreedily = async ({ path, authorization }: (typeof greedy)[number]) => {
    const response = await http.get(url + path, { authorization }).catch(() => undefined);
    if (response?.status !== 200) await delay(REFUSED_PAUSE_MS);
  };
  const asking = greedy.flatMap((client) =>
    Array.from({ length: inFlight }, () => askFor(2 * ROUND_MS, signal, () => askGreedily(client))),
  );
  await measureFor(WARM_UP_MS);
  const beside = await measureFor(ROUND_MS);
  http.close();
  await Promise.allSettled(asking);
  return figure(
    `median of one client beside ${accounts} accounts with ${inFlight} heavy queries each`,
    'ms',
    [beside],
    {
      ...{ beside: { alone }, goal: ratio('≤', 5, alone) },
    },
  );
}

export const neighbours: Bench = {
  name: 'neighbours',
  run: ({ fixture, signal }) =>
    fixture.withProduct('neighbours', async (product) => {
      for (const usage of [GREEDY, POLITE]) {
        await fillUsage(product.warehouse, USAGE, { ...usage, start: END - SPAN, span: SPAN });
      }
      const [greedyKey, politeKey] = [await product.key(GREEDY.account), await product.key(POLITE.account)];
      const greedyPath = metricsPath(GREEDY.account, { ...QUERY, groupBy: GREEDY_GROUPS });
      const politePath = metricsPath(POLITE.account, { ...QUERY, groupBy: ['resource_name'] });
      const work = async ({ url }: { readonly url: string }) => {
        const http = new HttpClient(CLIENTS + 1);
        let [times, responded]: [number[], number] = [[], 0];
        const askPolitely = async () => {
          times.push((await http.ok(url + politePath, politeKey)).ms);
          await delay(POLITE_PAUSE_MS);
        };
        const askGreedily = async () => {
          const { status } = await http.get(url + greedyPath, { authorization: `Bearer ${greedyKey}` });
          if (status === 200) responded += 1;
        };
        const measurePolite = async () => {
          await askFor(WARM_UP_MS, signal, askPolitely);
          [times, responded] = [[], 0];
          await askFor(ROUND_MS, signal, askPolitely);
          return percentile(times, 0.95);
        };
        const alone = await measurePolite();
        const greedy = Array.from({ length: CLIENTS }, () => askFor(2 * ROUND_MS, signal, askGreedily));
        const p95 = await measurePolite();
        const beside = {
          alone,
          [`responses to the ${CLIENTS}`]: [(1000 * responded) / ROUND_MS, 'requests/s'] as const,
        };
        // Ends the requests of the greedy clients.
        http.close();
        await Promise.allSettled(greedy);
        return [
          figure(`p95 of one client beside ${CLIENTS} of another account`, 'ms', [p95], {
            ...{ beside, goal: ratio('≤', 3, alone) },
          }),
          await besideTenAccounts(
            product,
            url,
            signal,
            async (http) => (await http.ok(url + politePath, politeKey)).ms,
          ),
        ];
      };
      return fixture.withQuery(product, work, {});
    }),
};
