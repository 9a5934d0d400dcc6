/**
 * A dashboard's queries: computed, in turn with the same by hand; about an hour that is not sealed; and an operator's, about a month of ten
 * thousand accounts.
 */
import { type EpochMs, formatTimestamp, MS_PER_DAY, type Resolution } from '@meterline/catalog';
import type { KeyRole } from '@meterline/service/access';
import type { Product } from '../harness/product.js';
import { fillUsage, LARGE_ACCOUNT, loadCorpus, SANDBOX, sealFrom } from './corpus.js';
import { below, count, type Figure, figure, measure, measureInTurn, median, WARM_UP_MS } from './figure.js';
import type { Bench, BenchContext } from './fixture.js';
import { askByHand, metricsPath, QUERIES, type Query } from './queries.js';
import { HttpClient } from './traffic.js';

export const CORPUS = 'corpus';
/** Fast requests run often, because their medians differ only by milliseconds. */
export const RUNS = 25;
const GOAL_MS = 300;

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
  work: (as: (account: string, role?: KeyRole) => Promise<Ask>, pid: number) => Promise<T>,
): Promise<T> {
  return fixture.withQuery(product, async ({ url, pid }) => {
    const http = new HttpClient();
    const as = async (account: string, role: KeyRole = 'admin'): Promise<Ask> => {
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
    return withApi(context, product, async (as) => {
      const ask = await as(LARGE_ACCOUNT);
      const figures: Figure[] = [];
      for (const query of QUERIES) {
        const [computed, byHand] = await measureInTurn(
          () => ask(metricsPath(LARGE_ACCOUNT, query)),
          () => askByHand(product.warehouse, query),
          { runs: RUNS, warmUpMs: WARM_UP_MS },
        );
        const value = median(byHand);
        const limit = 1.3 * value + 10;
        const goal = (own: number) => ({ text: `≤ ${limit.toFixed(1)} ms = 1.3 by hand + 10`, met: own <= limit });
        figures.push(figure(query.title, 'ms', computed, { beside: [{ what: 'by hand', value, unit: 'ms' }], goal }));
      }
      return figures;
    });
  },
};

/** Events of one large account whose ids are of version 7: of `--events`, and no more than four million. */
const OPEN_HOUR = {
  database: 'open_hour',
  share: 1 / 5,
  most: 4_000_000,
  inserts: 80,
  start: Date.UTC(2025, 9, 20, 12),
};
const part = (from: number, to: number) => ({
  window: { startTime: OPEN_HOUR.start + from * 60_000, endTime: OPEN_HOUR.start + to * 60_000 },
  resolution: 'hourly' as const,
});
const OPEN_HOUR_QUERIES: readonly Query[] = [
  { title: 'total', ...part(0, 60), groupBy: [] },
  { title: 'by workspace', ...part(0, 60), groupBy: ['workspace'] },
  { title: 'by name', ...part(0, 60), groupBy: ['resource_name'] },
  { title: 'by workspace, half an hour of it', ...part(15, 45), groupBy: ['workspace'] },
];

export const openHour: Bench = {
  name: 'open-hour',
  async run(context) {
    const { database, share, most, inserts, start } = OPEN_HOUR;
    const events = Math.min(most, Math.ceil(context.events * share));
    const product = await context.fixture.product(database);
    const columns = {
      ...{ ...SANDBOX, account_id: '{account: String}', workspace: "concat('workspace-', toString(number % 8))" },
      resource_name: "concat('sandbox-', toString(number % 400))",
    };
    const at = '{start: Int64} + intDiv(number * 3599000, {events: UInt32})';
    const rows = Math.ceil(events / inserts);
    // In the order of their times, a batch after the other, as workers insert.
    for (let first = 0; first < events; first += rows) {
      context.signal.throwIfAborted();
      await fillUsage(product.warehouse, { at, columns }, { account: LARGE_ACCOUNT, start, first, rows, events });
    }
    const figures = await withApi(context, product, async (as) => {
      const ask = await as(LARGE_ACCOUNT);
      const measured: Figure[] = [];
      for (const query of OPEN_HOUR_QUERIES) {
        const runs = await measure(() => ask(metricsPath(LARGE_ACCOUNT, query)));
        measured.push(figure(`${query.title}, ${count(events)} events`, 'ms', runs, { goal: below(GOAL_MS, 'ms') }));
      }
      return measured;
    });
    await context.fixture.drop(database);
    return figures;
  },
};

/** Each account has two events a day, each in a workspace of its own. */
const ALL = { database: 'all_accounts', accounts: 10_000, days: 30, eventsADay: 2, start: Date.UTC(2025, 8, 1) };

export const allAccounts: Bench = {
  name: 'all-accounts',
  async run(context) {
    const { database, accounts, days, eventsADay, start } = ALL;
    const end: EpochMs = start + days * MS_PER_DAY;
    const product = await context.fixture.product(database);
    const columns = {
      ...SANDBOX,
      account_id: `concat('account-', leftPad(toString(number % ${accounts}), 6, '0'))`,
      workspace: `concat('workspace-', toString(intDiv(number, ${accounts}) % ${eventsADay}))`,
    };
    const at = `{start: Int64} + intDiv(number, ${accounts * eventsADay}) * ${MS_PER_DAY} + number % 3600000`;
    await fillUsage(product.warehouse, { at, columns }, { start, rows: accounts * eventsADay * days });
    await sealFrom(product.warehouse, start, end, context.signal);
    const figures = await withApi(context, product, async (as) => {
      const ask = await as('platform', 'operator');
      const measured: Figure[] = [];
      for (const resolution of ['monthly', 'daily'] satisfies Resolution[]) {
        const window = { startTime: formatTimestamp(start), endTime: formatTimestamp(end) };
        const path = `/v0/metrics?${new URLSearchParams({ ...window, resolution, groupBy: 'account' })}`;
        const runs = await measure(() => ask(path), 15, WARM_UP_MS);
        const what = `${days} days of ${count(accounts)} accounts by account, ${resolution}`;
        measured.push(figure(what, 'ms', runs, { goal: below(GOAL_MS, 'ms') }));
      }
      return measured;
    });
    await context.fixture.drop(database);
    return figures;
  },
};
