/** Many clients at once, while events come in: each query computed, and with `Cache-Control: max-age=10`, in turn. */
import { QUEUE_PREFIX } from '@meterline/catalog';
import type { HttpProcess } from '../harness/services.js';
import { select } from '../harness/stack.js';
import type { Bench, BenchContext } from './bench.js';
import { CORPUS, largeCorpus } from './dashboard.js';
import { type Figure, median, percentile, type Reach } from './figure.js';
import { HttpClient } from './http-client.js';
import { processorMs } from './machine.js';
import { metricsPath, QUESTIONS } from './questions.js';

const CLIENTS = 64;
const ROUNDS = 5;
const ROUND_MS = 8_000;
const WARM_UP_MS = 4_000;
/** Events a second that come in: more would measure the producer, which runs on the same cores. */
const OFFERED = 19_000;
/** Of these, how many must be stored meanwhile: those that are in the queue or an insert at the end of a round are stored in the next. */
const STORED_SHARE = 0.95;
/** How often each of QUESTIONS occurs in the mix: mostly summaries, sometimes a long list. */
const MIX = [8, 6, 6, 2, 1, 7] as const;
/** What a caller sends who accepts a response that is ten seconds old. */
const CACHED: Headers = { 'cache-control': 'max-age=10' };
/** How many responses a second there should be with it, and within which time 99 % of them. */
const GOALS = { perSecond: 500, p99Ms: 1_000 };
/** Of ten clients, four look at the large account. */
const LARGE_CLIENTS = 0.4;

type Headers = Readonly<Record<string, string>>;

interface Round {
  readonly times: readonly number[];
  readonly errors: number;
  readonly seconds: number;
  /** Events that the worker stored meanwhile. */
  readonly stored: number;
  /** Processor time for each answer, in milliseconds, by process; that of servers has what the events took. */
  readonly spent: ReadonlyMap<string, number>;
}

export const load: Bench = {
  name: 'load',
  async run(context) {
    const { site } = context;
    await largeCorpus(context);
    return site.withIngest({ CLICKHOUSE_DATABASE: CORPUS }, () =>
      site.withScript('./producer.js', [site.redisUrl, QUEUE_PREFIX, String(OFFERED)], () =>
        site.withQuery(CORPUS, (query) => compare(context, query)),
      ),
    );
  },
};

async function compare(context: BenchContext, query: HttpProcess): Promise<Figure[]> {
  const clients = await Clients.open(context);
  const [computed, cached]: [Round[], Round[]] = [[], []];
  try {
    await clients.ask(query, {}, WARM_UP_MS);
    for (let index = 0; index < ROUNDS; index += 1) {
      computed.push(await clients.ask(query, {}, ROUND_MS));
      cached.push(await clients.ask(query, CACHED, ROUND_MS));
    }
  } finally {
    clients.close();
  }
  return [...figures('each computed', computed), ...figures('with max-age=10', cached, GOALS.perSecond)];
}

/** @param goal responses a second; undefined: there is none */
function figures(of: string, rounds: readonly Round[], goal?: number): Figure[] {
  const p50s = rounds.map(({ times }) => median(times));
  const p99s = rounds.map(({ times }) => percentile(times, 0.99));
  const rates = rounds.map(({ times, seconds }) => times.length / seconds);
  const errors = rounds.reduce((sum, round) => sum + round.errors, 0);
  const stored = rounds.map(({ stored, seconds }) => stored / seconds);
  const what = (name: string) => `${CLIENTS} clients, ${of}: ${name}`;
  const [rate, p99] = [median(rates), median(p99s)];
  const ofRate: Reach | undefined = goal ? { text: `≥ ${goal} requests/s`, met: rate >= goal } : undefined;
  const ofP99: Reach = { text: `≤ ${GOALS.p99Ms} ms`, met: p99 <= GOALS.p99Ms };
  return [
    {
      ...{ what: what('answers'), value: rate, unit: 'requests/s', runs: rates },
      ...(ofRate && { reach: ofRate }),
    },
    {
      ...{ what: what('stored meanwhile'), value: median(stored), unit: 'events/s', runs: stored },
      beside: [{ what: 'offered', value: OFFERED, unit: 'events/s' }],
      ...(goal && {
        reach: { text: `≥ ${OFFERED * STORED_SHARE} events/s`, met: median(stored) >= OFFERED * STORED_SHARE },
      }),
    },
    { what: what('p50'), value: median(p50s), unit: 'ms', runs: p50s },
    { what: what('p99'), value: p99, unit: 'ms', runs: p99s, ...(goal && { reach: ofP99 }) },
    ...[...(rounds[0]?.spent.keys() ?? [])].map((name): Figure => {
      const runs = rounds.map(({ spent }) => (spent.get(name) ?? 0) * 1000);
      const spent = what(`processor time of ${name} for each answer`);
      return { what: spent, value: median(runs), unit: 'µs', runs };
    }),
    {
      what: what('answers other than 200'),
      value: errors,
      unit: 'errors',
      reach: { text: 'none', met: errors === 0 },
    },
  ];
}

class Clients {
  readonly #context: BenchContext;
  readonly #http = new HttpClient(CLIENTS);
  readonly #clients: readonly { readonly account: string; readonly key: string }[];

  private constructor(context: BenchContext, clients: readonly { readonly account: string; readonly key: string }[]) {
    this.#context = context;
    this.#clients = clients;
  }

  static async open(context: BenchContext): Promise<Clients> {
    const clients = Array.from({ length: CLIENTS }, async (_, index) => {
      const account = `account-${String(index < CLIENTS * LARGE_CLIENTS ? 0 : index).padStart(2, '0')}`;
      return { account, key: await context.site.createKey(account, `bench-load-${index}`) };
    });
    return new Clients(context, await Promise.all(clients));
  }

  /** Each client asks as soon as it has its answer, which it takes compressed, as browsers and the client library do. */
  async ask({ url, pid }: HttpProcess, sent: Headers, milliseconds: number): Promise<Round> {
    const { signal, site } = this.#context;
    signal.throwIfAborted();
    const pids = Object.entries({ 'the query service': pid, ...site.serverPids, 'the clients': process.pid });
    const before = new Map(pids.map(([name, of]) => [name, processorMs(of) ?? 0]));
    const storedBefore = await this.#stored();
    const started = performance.now();
    const times: number[] = [];
    let errors = 0;
    await Promise.all(
      this.#clients.map(async ({ account, key }, index) => {
        const path = questionMix(account, index);
        while (performance.now() - started < milliseconds) {
          const headers = { ...sent, authorization: `Bearer ${key}`, 'accept-encoding': 'gzip' };
          const { status, ms } = await this.#http.ask(`${url}${path()}`, headers);
          if (status === 200) times.push(ms);
          else errors += 1;
        }
      }),
    );
    const spent = new Map(
      pids.map(([name, of]) => [name, ((processorMs(of) ?? 0) - (before.get(name) ?? 0)) / times.length]),
    );
    const seconds = (performance.now() - started) / 1000;
    return { times, errors, seconds, stored: (await this.#stored()) - storedBefore, spent };
  }

  /** How many events there are. */
  async #stored(): Promise<number> {
    const warehouse = await this.#context.site.warehouse(CORPUS);
    const [row] = await select<{ events: number }>(warehouse, 'SELECT toUInt32(count()) AS events FROM usage_events');
    return row?.events ?? 0;
  }

  close(): void {
    this.#http.close();
  }
}

/** @returns a function that gives a client's next request; every client begins at another place in the mix */
function questionMix(account: string, client: number): () => string {
  const paths = QUESTIONS.flatMap((question, index) =>
    Array.from({ length: MIX[index] ?? 0 }, () => metricsPath(account, question)),
  );
  let asked = client * 7;
  return () => {
    // 11 and the number of paths have no common factor, so that the kinds of requests alternate.
    asked += 11;
    return paths[asked % paths.length] ?? '';
  };
}
