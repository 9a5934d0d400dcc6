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
import { atMost, type Figure, figure, median, percentile } from './figure.js';
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
/** What must be stored of them meanwhile: those that are in the queue or an insert at the end of a round are stored in the next. */
const STORED = OFFERED * 0.95;
/** How often each of QUERIES occurs in the mix: mostly summaries, sometimes a long list. */
const MIX = [8, 6, 6, 2, 1, 7] as const;
/** What a caller sends who accepts a response that is ten seconds old. */
const CACHED = { 'cache-control': 'max-age=10' };
/** How many responses a second there should be with it, and within which time 99 % of them. */
const GOALS = { perSecond: 500, p99Ms: 1_000 };

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
    signal.throwIfAborted();
    const [before, started] = [await stored(), performance.now()];
    const times: number[] = [];
    let errors = 0;
    const asking = clients.map(async ({ authorization, path }) => {
      while (performance.now() - started < milliseconds) {
        const response = await http.get(`${url}${path()}`, { ...headers, authorization, 'accept-encoding': 'gzip' });
        if (response.status === 200) times.push(response.ms);
        else errors += 1;
      }
    });
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
  const of = (rounds: readonly Round[], what: 'perSecond' | 'p99' | 'stored') => rounds.map((round) => round[what]);
  const name = (what: string) => `${CLIENTS} clients with max-age=10: ${what}`;
  const { perSecond, p99Ms } = GOALS;
  const errors = [...computed, ...cached].reduce((sum, round) => sum + round.errors, 0);
  return [
    figure(name('responses'), 'requests/s', of(cached, 'perSecond'), {
      beside: [{ what: 'each computed', value: median(of(computed, 'perSecond')), unit: 'requests/s' }],
      goal: (rate) => ({ text: `≥ ${perSecond} requests/s`, met: rate >= perSecond }),
    }),
    figure(name('p99'), 'ms', of(cached, 'p99'), {
      beside: [{ what: 'each computed', value: median(of(computed, 'p99')), unit: 'ms' }],
      goal: (p99) => ({ text: `≤ ${p99Ms} ms`, met: p99 <= p99Ms }),
    }),
    figure(name('stored meanwhile'), 'events/s', of(cached, 'stored'), {
      goal: (rate) => ({ text: `≥ ${STORED} events/s`, met: rate >= STORED }),
    }),
    figure('responses other than 200', 'errors', [errors], { goal: (n) => ({ text: 'none', met: n === 0 }) }),
  ];
}

const DATABASE = 'neighbours';
const DAYS = 90;
const SPAN = DAYS * MS_PER_DAY;
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

export const neighbours: Bench = {
  name: 'neighbours',
  async run({ fixture, signal }) {
    const product = await fixture.product(DATABASE);
    for (const usage of [GREEDY, POLITE]) {
      await fillUsage(product.warehouse, USAGE, { ...usage, start: END - SPAN, span: SPAN });
    }
    const [greedyKey, politeKey] = [await product.key(GREEDY.account), await product.key(POLITE.account)];
    const greedyPath = metricsPath(GREEDY.account, { ...QUERY, groupBy: GREEDY_GROUPS });
    const politePath = metricsPath(POLITE.account, { ...QUERY, groupBy: ['resource_name'] });
    const http = new HttpClient(CLIENTS + 1);
    const work = async ({ url }: { readonly url: string }) => {
      const askPolitely = async (milliseconds: number) => {
        const times: number[] = [];
        for (const started = performance.now(); performance.now() - started < milliseconds; ) {
          signal.throwIfAborted();
          times.push((await http.ok(url + politePath, politeKey)).ms);
          await delay(POLITE_PAUSE_MS);
        }
        return times;
      };
      let [isOn, responded] = [true, 0];
      const askGreedily = async () => {
        while (isOn) {
          const { status } = await http.get(url + greedyPath, { authorization: `Bearer ${greedyKey}` });
          if (status === 200) responded += 1;
        }
      };
      await askPolitely(WARM_UP_MS);
      const alone = await askPolitely(ROUND_MS);
      // At the end of the round the connections are closed.
      const clients = Array.from({ length: CLIENTS }, () => askGreedily().catch(() => undefined));
      await askPolitely(WARM_UP_MS);
      responded = 0;
      const beside = await askPolitely(ROUND_MS).finally(() => {
        isOn = false;
        http.close();
      });
      await Promise.all(clients);
      return { alone, beside, responded };
    };
    const { alone, beside, responded } = await fixture.withQuery(product, work, {});
    await fixture.drop(DATABASE);
    const [p95Alone, p95] = [percentile(alone, 0.95), percentile(beside, 0.95)];
    const peers = [
      { what: 'alone', value: p95Alone, unit: 'ms' },
      { what: `responses to the ${CLIENTS}`, value: (1000 * responded) / ROUND_MS, unit: 'requests/s' },
    ] as const;
    const goal = atMost(3, p95Alone);
    return [figure(`p95 of one client beside ${CLIENTS} of another account`, 'ms', [p95], { beside: peers, goal })];
  },
};
