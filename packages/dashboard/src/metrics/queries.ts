/** The page's requests to the API. Every answer is kept until the person refreshes. */
import {
  bucketAxis,
  type EpochMs,
  formatTimestamp,
  MS_PER_DAY,
  type Resolution,
  upTo,
  type Window,
} from '@meterline/catalog';
import type { FilterQuery, MeterlineClient, MetricsAnswer, MetricsEntry, MetricsQuery } from '@meterline/client';
import {
  hashKey,
  keepPreviousData,
  type QueryClient,
  queryOptions,
  useInfiniteQuery,
  useQuery,
} from '@tanstack/react-query';
import { useEffect } from 'react';
import * as z from 'zod/mini';
import { type BreakdownSource, sumSeries } from '../breakdown/breakdown.js';
import { type DailyCosts, monthWindow } from '../forecast/forecast.js';
import { periodWindow } from '../period/period.js';
import { useSession } from '../shell/session.js';
import type { View } from '../view/view.js';
import { filterQuery } from './filter-query.js';
import { metricsQuery, resolutionOf, timesOf, wholeQuery } from './question.js';

/** A comparison reads so many pages of the period before; the groups after them are too small to matter. */
const MOST_COMPARED_PAGES = 50;
const BREAKDOWN_ATTEMPTS = 3;

function accountsQuery(client: MeterlineClient) {
  return queryOptions({ queryKey: ['accounts'], queryFn: ({ signal }) => client.accounts({ signal }) });
}

export function useAccounts() {
  return useQuery(accountsQuery(useSession().client));
}

const pageSettings = z.object({ collectorUrl: z.optional(z.string()) });

/** Null: the service does not say. */
export function useCollectorUrl() {
  return useQuery({
    queryKey: ['page settings'],
    queryFn: async ({ signal }) => {
      const answer = await fetch('/page-settings.json', { signal });
      return (answer.ok && pageSettings.parse(await answer.json()).collectorUrl) || null;
    },
    retry: false,
  });
}

/** A view at the instant that its screen is as of. */
export interface Snapshot {
  readonly view: View;
  /** The whole period; what has not passed yet has no figures. */
  readonly window: Window;
  readonly resolution: Resolution;
  readonly asOf: EpochMs;
}

export function snapshotOf(view: View, asOf: EpochMs): Snapshot {
  const window = periodWindow(view.period, asOf);
  return { view, window, resolution: resolutionOf(view, window), asOf };
}

function breakdownQuery(client: MeterlineClient, account: string, asked: Snapshot, filters: FilterQuery) {
  const { view, resolution, asOf } = asked;
  const query = metricsQuery(view, { window: upTo(asked.window, asOf), resolution, filters });
  const whole = wholeQuery(view, query);
  return queryOptions({
    queryKey: ['metrics', account, 'breakdown', query, whole],
    queryFn: async ({ signal }) => ({
      ...(await fetchBreakdown(client, account, query, whole, signal)),
      // The page may still show the answer to the question before.
      asked: { ...asked, query },
    }),
  });
}

/**
 * The first page of groups and, if there are more pages, the totals of all groups, which Other is computed from. Both are
 * requested again when events arrived between the two answers.
 */
async function fetchBreakdown(
  client: MeterlineClient,
  account: string,
  query: MetricsQuery,
  whole: MetricsQuery,
  signal: AbortSignal,
): Promise<BreakdownSource> {
  for (let attempt = 1; ; attempt += 1) {
    const first = await client.metrics(account, query, { signal });
    if (!first.meta.hasMore) return { first, whole: undefined };
    const everything = await client.metrics(account, whole, { signal });
    const agree = everything.summary.totalCost === first.summary.totalCost;
    if (agree || attempt === BREAKDOWN_ATTEMPTS) return { first, whole: everything };
  }
}

/** The first page of groups and the whole. The last answer stays on the page until the next one comes. */
export function useBreakdown(account: string, asked: Snapshot, filters: FilterQuery, enabled: boolean) {
  const { client } = useSession();
  return useQuery({
    ...breakdownQuery(client, account, asked, filters),
    placeholderData: keepPreviousData,
    enabled,
  });
}

/** Starts the requests of the first view before the page renders. */
export function prefetchFirstView(queries: QueryClient, client: MeterlineClient, view: View, asOf: EpochMs): void {
  void queries.prefetchQuery(accountsQuery(client));
  const { account, filters } = view;
  if (account === undefined) return;
  void queries.prefetchQuery(breakdownQuery(client, account, snapshotOf(view, asOf), filterQuery(filters)));
}

/** The pages after the first, as many as are needed. */
export function useFurtherPages(account: string, query: MetricsQuery, first: MetricsAnswer | undefined, pages: number) {
  const { client } = useSession();
  const cursor = first?.meta.nextCursor ?? '';
  const result = useInfiniteQuery({
    queryKey: ['metrics', account, 'pages', query, cursor],
    queryFn: ({ pageParam, signal }) => client.metrics(account, { ...query, cursor: pageParam }, { signal }),
    initialPageParam: cursor,
    getNextPageParam: (last: MetricsAnswer) => last.meta.nextCursor || undefined,
    enabled: cursor !== '' && pages > 0,
  });
  const { data, fetchNextPage, hasNextPage, isFetching, isError } = result;
  const fetched = data?.pages.length ?? 0;
  useEffect(() => {
    if (fetched > 0 && fetched < pages && hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [fetched, pages, hasNextPage, isFetching, isError, fetchNextPage]);
  const entries: readonly MetricsEntry[] = cursor === '' ? [] : (data?.pages.flatMap((page) => page.data) ?? []);
  const hasMore = cursor !== '' && (fetched === 0 || hasNextPage);
  return { entries, hasMore, isFetching, error: result.error, refetch: result.refetch };
}

export interface PreviousPeriod {
  /** Without a breakdown. */
  readonly whole: MetricsAnswer;
  readonly entries: readonly MetricsEntry[];
}

/** The period before, with its groups, to compare each row of the table with. */
export function usePreviousPeriod(
  account: string,
  query: MetricsQuery | undefined,
  whole: MetricsQuery | undefined,
  enabled: boolean,
) {
  const { client } = useSession();
  return useQuery({
    queryKey: ['metrics', account, 'previous', query, whole],
    queryFn: async ({ signal }): Promise<PreviousPeriod | null> => {
      if (!query || !whole) return null;
      const [everything, entries] = await Promise.all([
        client.metrics(account, whole, { signal }),
        firstEntries(client, account, query, signal),
      ]);
      return { whole: everything, entries };
    },
    enabled: enabled && query !== undefined,
  });
}

async function firstEntries(client: MeterlineClient, account: string, query: MetricsQuery, signal: AbortSignal) {
  const entries: MetricsEntry[] = [];
  let pages = 0;
  for await (const page of client.metricsPages(account, query, { signal })) {
    entries.push(...page.data);
    pages += 1;
    if (pages === MOST_COMPARED_PAGES) break;
  }
  return entries;
}

/** What each day of the month, and of the four weeks before, cost under the filters. */
export function useDailyCosts(account: string, filters: FilterQuery, asOf: EpochMs, enabled: boolean) {
  const { client } = useSession();
  const window = monthWindow(asOf);
  return useQuery({
    queryKey: ['metrics', account, 'daily', filters, window],
    queryFn: async ({ signal }): Promise<DailyCosts> => {
      const query = { ...filters, ...timesOf(window), resolution: 'daily' } as const;
      const { data } = await client.metrics(account, query, { signal });
      const days = bucketAxis(window, 'daily');
      return { days, costs: sumSeries(data, 'cost', days.length) };
    },
    // After a refresh the figure stays until the next one comes; that of other filters would be a wrong one.
    placeholderData: (last, lastQuery) =>
      lastQuery?.queryKey[1] === account && hashKey([lastQuery.queryKey[3]]) === hashKey([filters]) ? last : undefined,
    enabled,
  });
}

/** The start of the last month with any usage; null when there never was any. */
export function useLastUse(account: string, asOf: EpochMs, enabled: boolean) {
  const { client } = useSession();
  return useQuery({
    queryKey: ['metrics', account, 'last use', asOf],
    queryFn: async ({ signal }) => {
      const ever = { startTime: formatTimestamp(0), endTime: formatTimestamp(asOf + MS_PER_DAY) };
      const answer = await client.metrics(
        account,
        { ...ever, resolution: 'monthly', groupBy: ['billing_dimension'] },
        { signal },
      );
      const used = answer.data.flatMap(({ timeseries }) => timeseries.filter(({ usage }) => usage !== '0'));
      const months = used.map(({ timestamp }) => timestamp).sort();
      return months.at(-1) ?? null;
    },
    placeholderData: keepPreviousData,
    enabled,
  });
}
