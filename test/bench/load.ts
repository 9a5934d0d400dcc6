/**
 * Many clients at once, while events come in: the mix of questions without and with kept answers, in turn, and then questions about
 * sealed hours alone, again and again.
 */
import { QUEUE_PREFIX } from '@meterline/catalog';
import { type HttpProcess, NO_LIMITS, type ServiceEnvironment } from '../services.js';
import { select } from '../stack.js';
import type { Bench, BenchContext } from './bench.js';
import { CORPUS, largeCorpus } from './dashboard.js';
import { type Figure, median, percentile, type Reach } from './figure.js';
import { HttpClient } from './http-client.js';
import { processorMs } from './machine.js';
import { metricsPath, QUESTIONS } from './questions.js';
import { KEEPING_ANSWERS } from './site.js';

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
/** The same without the current day, which is the last of QUESTIONS. */
const SEALED = [8, 6, 6, 2, 1, 0] as const;
/** Each answer, also of questions that several clients ask at once. */
const COMPUTING: ServiceEnvironment = { ...NO_LIMITS, ANSWER_CACHE_BYTES: '0' };
/** What answers a second should reach, and within which time 99 % of them should be there. */
const GOALS = { mix: 150, sealed: 1_000, p99Ms: 1_000 };
/** Of ten clients, four look at the large account. */
const LARGE_CLIENTS = 0.4;

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
    const { site, options } = context;
    await largeCorpus(site, options.events);
    return site.withIngest({ CLICKHOUSE_DATABASE: CORPUS }, () =>
      site.withScript('./producer.ts', [site.redisUrl, QUEUE_PREFIX, String(OFFERED)], () =>
        site.withQuery(
          CORPUS,
          (computing) => site.withQuery(CORPUS, (keeping) => compare(context, computing, keeping), KEEPING_ANSWERS),
          COMPUTING,
        ),
      ),
    );
  },
};

async function compare(context: BenchContext, computing: HttpProcess, keeping: HttpProcess): Promise<Figure[]> {
  const clients = await Clients.open(context);
  const [without, kept, sealed]: [Round[], Round[], Round[]] = [[], [], []];
  try {
    for (const query of [computing, keeping]) await clients.ask(query, MIX, WARM_UP_MS);
    for (let index = 0; index < ROUNDS; index += 1) {
      without.push(await clients.ask(computing, MIX, ROUND_MS));
      kept.push(await clients.ask(keeping, MIX, ROUND_MS));
      sealed.push(await clients.ask(keeping, SEALED, ROUND_MS));
    }
  } finally {
    clients.close();
  }
  return [
    ...figures('each computed', without),
    ...figures('answers kept', kept, GOALS.mix),
    ...figures('answers kept, sealed hours alone', sealed, GOALS.sealed),
  ];
}

/** @param goal answers a second; undefined: there is none */
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
      ...{ bench: 'load', what: what('answers'), value: rate, unit: 'requests/s', runs: rates },
      ...(ofRate && { reach: ofRate }),
    },
    {
      ...{ bench: 'load', what: what('stored meanwhile'), value: median(stored), unit: 'events/s', runs: stored },
      beside: [{ what: 'offered', value: OFFERED, unit: 'events/s' }],
      ...(goal && {
        reach: { text: `≥ ${OFFERED * STORED_SHARE} events/s`, met: median(stored) >= OFFERED * STORED_SHARE },
      }),
    },
    { bench: 'load', what: what('p50'), value: median(p50s), unit: 'ms', runs: p50s },
    { bench: 'load', what: what('p99'), value: p99, unit: 'ms', runs: p99s, ...(goal && { reach: ofP99 }) },
    ...[...(rounds[0]?.spent.keys() ?? [])].map((name): Figure => {
      const runs = rounds.map(({ spent }) => (spent.get(name) ?? 0) * 1000);
      const spent = what(`processor time of ${name} for each answer`);
      return { bench: 'load', what: spent, value: median(runs), unit: 'µs', runs };
    }),
    {
      bench: 'load',
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
  async ask({ url, pid }: HttpProcess, mix: readonly number[], milliseconds: number): Promise<Round> {
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
        const path = questionMix(account, mix, index);
        while (performance.now() - started < milliseconds) {
          const headers = { authorization: `Bearer ${key}`, 'accept-encoding': 'gzip' };
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
function questionMix(account: string, mix: readonly number[], client: number): () => string {
  const paths = QUESTIONS.flatMap((question, index) =>
    Array.from({ length: mix[index] ?? 0 }, () => metricsPath(account, question)),
  );
  let asked = client * 7;
  return () => {
    // 11 and the number of paths have no common factor, so that the kinds of requests alternate.
    asked += 11;
    return paths[asked % paths.length] ?? '';
  };
}
