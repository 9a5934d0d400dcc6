/** Many clients at once, while events come in: each query computed, and with `Cache-Control: max-age=10`, in turn. */
import type { Product } from '../harness/product.js';
import { select } from '../harness/stack.js';
import { largeCorpus } from './dashboard.js';
import { type Figure, median, medianOf, percentile } from './figure.js';
import type { Bench, BenchContext } from './fixture.js';
import { HttpClient } from './http.js';
import { metricsPath, QUERIES } from './queries.js';

const CLIENTS = 64;
/** Of ten clients, four look at the large account. */
const LARGE_CLIENTS = 0.4;
const ROUNDS = 5;
const ROUND_MS = 8_000;
const WARM_UP_MS = 4_000;
/** Events a second that come in: more would measure the producer, which runs on the same cores. */
const OFFERED = 19_000;
/** Of these, how many must be stored meanwhile: those that are in the queue or an insert at the end of a round are stored in the next. */
const STORED_SHARE = 0.95;
/** How often each of QUERIES occurs in the mix: mostly summaries, sometimes a long list. */
const MIX = [8, 6, 6, 2, 1, 7] as const;
/** What a caller sends who accepts a response that is ten seconds old. */
const CACHED = { 'cache-control': 'max-age=10' };
/** How many responses a second there should be with it, and within which time 99 % of them. */
const GOALS = { perSecond: 500, p99Ms: 1_000 };

interface Round {
  readonly times: readonly number[];
  readonly errors: number;
  readonly seconds: number;
  /** Events that the worker stored meanwhile. */
  readonly stored: number;
}
type Headers = Readonly<Record<string, string>>;

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
            computed.push(await round({}, ROUND_MS));
            cached.push(await round(CACHED, ROUND_MS));
          }
          http.close();
          return figures(computed, cached);
        }),
      ),
    );
  },
};

/** Each client asks as soon as it has its response, which it takes compressed, as browsers and the client library do. */
async function roundOf({ signal }: BenchContext, product: Product, http: HttpClient, url: string) {
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, async (_, index) => {
      const account = `account-${String(index < CLIENTS * LARGE_CLIENTS ? 0 : index).padStart(2, '0')}`;
      const key = await product.key(account, 'admin', `client ${index}`);
      return { authorization: `Bearer ${key}`, path: queryMix(account, index) };
    }),
  );
  const stored = async () => {
    const count = 'SELECT toUInt32(count()) AS events FROM usage_events';
    return (await select<{ events: number }>(product.warehouse, count))[0]?.events ?? 0;
  };
  return async (headers: Headers, milliseconds: number): Promise<Round> => {
    signal.throwIfAborted();
    const before = await stored();
    const started = performance.now();
    const times: number[] = [];
    let errors = 0;
    await Promise.all(
      clients.map(async ({ authorization, path }) => {
        while (performance.now() - started < milliseconds) {
          const response = await http.get(`${url}${path()}`, { ...headers, authorization, 'accept-encoding': 'gzip' });
          if (response.status === 200) times.push(response.ms);
          else errors += 1;
        }
      }),
    );
    const seconds = (performance.now() - started) / 1000;
    return { times, errors, seconds, stored: (await stored()) - before };
  };
}

function figures(computed: readonly Round[], cached: readonly Round[]): Figure[] {
  const rates = (rounds: readonly Round[]) => rounds.map(({ times, seconds }) => times.length / seconds);
  const p99s = (rounds: readonly Round[]) => rounds.map(({ times }) => percentile(times, 0.99));
  const stored = cached.map((round) => round.stored / round.seconds);
  const errors = [...computed, ...cached].reduce((sum, round) => sum + round.errors, 0);
  const of = (what: string) => `${CLIENTS} clients with max-age=10: ${what}`;
  const [rate, p99, least] = [median(rates(cached)), median(p99s(cached)), OFFERED * STORED_SHARE];
  return [
    {
      ...medianOf(of('responses'), 'requests/s', rates(cached)),
      beside: [{ what: 'each computed', value: median(rates(computed)), unit: 'requests/s' }],
      reach: { text: `≥ ${GOALS.perSecond} requests/s`, met: rate >= GOALS.perSecond },
    },
    {
      ...medianOf(of('p99'), 'ms', p99s(cached)),
      beside: [{ what: 'each computed', value: median(p99s(computed)), unit: 'ms' }],
      reach: { text: `≤ ${GOALS.p99Ms} ms`, met: p99 <= GOALS.p99Ms },
    },
    {
      ...medianOf(of('stored meanwhile'), 'events/s', stored),
      reach: { text: `≥ ${least} events/s`, met: median(stored) >= least },
    },
    { ...medianOf('responses other than 200', 'errors', [errors]), reach: { text: 'none', met: errors === 0 } },
  ];
}

/** @returns a function that gives a client's next request; every client begins at another place in the mix */
function queryMix(account: string, client: number): () => string {
  const paths = QUERIES.flatMap((query, index) =>
    Array.from({ length: MIX[index] ?? 0 }, () => metricsPath(account, query)),
  );
  let asked = client * 7;
  return () => {
    // 11 and the number of paths have no common factor, so that the kinds of requests alternate.
    asked += 11;
    return paths[asked % paths.length] ?? '';
  };
}
