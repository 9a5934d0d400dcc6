/**
 * A dashboard's queries: computed, in turn with the same by hand; about an hour that is not sealed; and an operator's, about a month of ten
 * thousand accounts.
 */
import { formatTimestamp, MS_PER_DAY } from '@meterline/catalog';
import type { KeyRole } from '@meterline/service/access';
import type { Product } from '../harness/product.js';
import { fillUsage, LARGE_ACCOUNT, loadCorpus, SANDBOX, sealFrom } from './corpus.js';
import {
  count,
  type Figure,
  figure,
  limit,
  measure,
  measureInTurn,
  median,
  ProcessorTimes,
  ratio,
  WARM_UP_MS,
} from './figure.js';
import type { Bench, BenchContext } from './fixture.js';
import { askByHand, metricsPath, QUERIES } from './queries.js';
import { HttpClient } from './traffic.js';

export const CORPUS = 'corpus';
/** Fast requests run often, because their medians differ only by milliseconds. */
export const RUNS = 25;

/** Loads the large data set when the run does not have it yet. */
export async function largeCorpus(context: BenchContext): Promise<Product> {
  const { fixture, events } = context;
  if (!fixture.has(CORPUS)) await loadCorpus(context, CORPUS, events);
  return fixture.product(CORPUS);
}

/** Resolves with the milliseconds until the response. */
type Ask = (path: string) => Promise<number>;

/** Runs a query service, and gives what asks it with a key of an account. */
export function withApi<T>(
  { fixture, signal }: BenchContext,
  product: Product,
  work: (as: (account: string | undefined, role?: KeyRole) => Promise<Ask>, pid: number) => Promise<T>,
): Promise<T> {
  return fixture.withQuery(product, async ({ url, pid }) => {
    const http = new HttpClient();
    const as = async (account: string | undefined, role: KeyRole = 'admin'): Promise<Ask> => {
      const key = await product.key(account, role, crypto.randomUUID());
      return async (path) => {
        signal.throwIfAborted();
        return (await http.ok(url + path, key)).ms;
      };
    };
    return work(as, pid).finally(() => http.close());
  });
}

export const dashboard: Bench = {
  name: 'dashboard',
  async run(context) {
    const product = await largeCorpus(context);
    return withApi(context, product, async (as, pid) => {
      const ask = await as(LARGE_ACCOUNT);
      const figures: Figure[] = [];
      for (const [index, query] of QUERIES.entries()) {
        const [computed = [], runs = []] = await measureInTurn(
          [() => ask(metricsPath(LARGE_ACCOUNT, query)), () => askByHand(product.warehouse, query)],
          { runs: RUNS, warmUpMs: WARM_UP_MS },
        );
        const byHand = median(runs);
        const goal = ratio('≤', RATIOS[index] ?? 1, byHand);
        figures.push(figure(query.title, 'ms', computed, { beside: { 'by hand': byHand }, goal }));
      }
      const spent = new ProcessorTimes({ 'the query service': pid, ...context.fixture.serverPids });
      for (let run = 0; run < COST_RUNS; run += 1) {
        await spent.of(COST_REQUESTS * QUERIES.length, async () => {
          for (let n = 0; n < COST_REQUESTS; n += 1) {
            for (const query of QUERIES) await ask(metricsPath(LARGE_ACCOUNT, query));
          }
        });
      }
      return [...figures, ...spent.figures('a thousand queries, each of these in turn', 1_000)];
    });
  },
};

/** The goals, of each query by hand. */
const RATIOS = [2, 1.8, 1.6, 1.5, 1.5, 1.9] as const;
/** The first run is the warm-up. */
const COST_RUNS = 4;
const COST_REQUESTS = 5;

/** Measures each request, by its title. */
function measureEach(
  context: BenchContext,
  product: Product,
  caller: readonly [account: string | undefined, role: KeyRole],
  paths: Readonly<Record<string, string>>,
): Promise<Figure[]> {
  return withApi(context, product, async (as) => {
    const ask = await as(...caller);
    const figures: Figure[] = [];
    for (const [title, path] of Object.entries(paths)) {
      const runs = await measure(() => ask(path), { runs: 15, warmUpMs: WARM_UP_MS });
      figures.push(figure(title, 'ms', runs, { goal: limit('≤', 300, 'ms') }));
    }
    return figures;
  });
}

/** An hour that is not sealed, with a fifth of `--events`, at most four million. Ids are of version 7. */
export const openHour: Bench = {
  name: 'open-hour',
  run: (context) =>
    context.fixture.withProduct('open_hour', async (product) => {
      const events = Math.min(4_000_000, Math.ceil(context.events / 5));
      const start = Date.UTC(2025, 9, 20, 12);
      const columns = {
        ...{ ...SANDBOX, account_id: '{account: String}', workspace: "concat('workspace-', toString(number % 8))" },
        resource_name: "concat('sandbox-', toString(number % 400))",
      };
      const at = '{start: Int64} + intDiv(number * 3599000, {events: UInt32})';
      const rows = Math.ceil(events / 80);
      // In the order of their times, a batch after the other, as workers insert.
      for (let first = 0; first < events; first += rows) {
        context.signal.throwIfAborted();
        await fillUsage(product.warehouse, { at, columns }, { account: LARGE_ACCOUNT, start, first, rows, events });
      }
      const path = (groupBy: readonly ('workspace' | 'resource_name')[], from = 0, to = 60) => {
        const window = { startTime: start + from * 60_000, endTime: start + to * 60_000 };
        return metricsPath(LARGE_ACCOUNT, { window, resolution: 'hourly', groupBy });
      };
      return measureEach(context, product, [LARGE_ACCOUNT, 'admin'], {
        [`total, ${count(events)} events`]: path([]),
        [`by workspace, ${count(events)} events`]: path(['workspace']),
        [`by name, ${count(events)} events`]: path(['resource_name']),
        [`by workspace, half an hour of ${count(events)} events`]: path(['workspace'], 15, 45),
      });
    }),
};

/** Each account has two events a day, each in a workspace of its own. */
const ALL = { accounts: 10_000, days: 30, eventsADay: 2, start: Date.UTC(2025, 8, 1) };

export const allAccounts: Bench = {
  name: 'all-accounts',
  run: (context) =>
    context.fixture.withProduct('all_accounts', async (product) => {
      const { accounts, days, eventsADay, start } = ALL;
      const end = start + days * MS_PER_DAY;
      const columns = {
        ...SANDBOX,
        account_id: `concat('account-', leftPad(toString(number % ${accounts}), 6, '0'))`,
        workspace: `concat('workspace-', toString(intDiv(number, ${accounts}) % ${eventsADay}))`,
      };
      const at = `{start: Int64} + intDiv(number, ${accounts * eventsADay}) * ${MS_PER_DAY} + number % 3600000`;
      await fillUsage(product.warehouse, { at, columns }, { start, rows: accounts * eventsADay * days });
      await sealFrom(product.warehouse, start, end, context.signal);
      const path = (resolution: string) => {
        const window = { startTime: formatTimestamp(start), endTime: formatTimestamp(end) };
        return `/v0/metrics?${new URLSearchParams({ ...window, resolution, groupBy: 'account' })}`;
      };
      return measureEach(context, product, [undefined, 'operator'], {
        [`${days} days of ${count(accounts)} accounts by account, monthly`]: path('monthly'),
        [`${days} days of ${count(accounts)} accounts by account, daily`]: path('daily'),
      });
    }),
};
