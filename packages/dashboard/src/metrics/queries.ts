/** The page's requests to the API. Every answer is kept until the person refreshes. */
import { type EpochMs, formatTimestamp, MS_PER_DAY, type Window } from '@meterline/catalog';
import type { MeterlineClient, MetricsAnswer, MetricsEntry, MetricsQuery } from '@meterline/client';
import { keepPreviousData, type QueryClient, queryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { BreakdownSource } from '../breakdown/breakdown.js';
import { periodWindow } from '../period/period.js';
import { useSession } from '../shell/session.js';
import type { Filters, View } from '../view/view.js';
import { metricsQuery, wholeQuery } from './question.js';

/** The API's largest page, in groups. */
export const API_PAGE_SIZE = 100;
/** A comparison reads so many pages of the period before; the groups after them are too small to matter. */
const MOST_COMPARED_PAGES = 50;
const BREAKDOWN_ATTEMPTS = 3;

function accountsQuery(client: MeterlineClient) {
  return queryOptions({ queryKey: ['accounts'], queryFn: ({ signal }) => client.accounts({ signal }) });
}

export function useAccounts() {
  return useQuery(accountsQuery(useSession().client));
}

function breakdownQuery(client: MeterlineClient, account: string, view: View, now: EpochMs) {
  const window = periodWindow(view.period, now);
  const query = metricsQuery(view, window);
  const whole = wholeQuery(view, query);
  return queryOptions({
    queryKey: ['metrics', account, 'breakdown', query, whole],
    queryFn: async ({ signal }) => ({
      ...(await fetchBreakdown(client, account, query, whole, signal)),
      // The page may still show the answer to the question before.
      asked: { view, window },
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
export function useBreakdown(account: string, view: View, now: EpochMs, enabled: boolean) {
  const { client } = useSession();
  return useQuery({ ...breakdownQuery(client, account, view, now), placeholderData: keepPreviousData, enabled });
}

/** Starts the requests of the first view before the page renders. */
export function prefetchFirstView(queries: QueryClient, client: MeterlineClient, view: View, now: EpochMs): void {
  void queries.prefetchQuery(accountsQuery(client));
  if (view.account !== undefined) void queries.prefetchQuery(breakdownQuery(client, view.account, view, now));
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

/** The total cost under the filters. */
export function useTotal(account: string, filters: Filters, window: Window, enabled: boolean) {
  const { client } = useSession();
  return useQuery({
    queryKey: ['metrics', account, 'total', filters, window],
    queryFn: async ({ signal }) => {
      const times = { startTime: formatTimestamp(window.startTime), endTime: formatTimestamp(window.endTime) };
      const query = { ...filters, ...times, resolution: 'monthly' } as const;
      return (await client.metrics(account, query, { signal })).summary.totalCost;
    },
    enabled,
  });
}

/** The start of the last month with any usage; null when there never was any. */
export function useLastUse(account: string, now: EpochMs, enabled: boolean) {
  const { client } = useSession();
  return useQuery({
    queryKey: ['metrics', account, 'last use', now],
    queryFn: async ({ signal }) => {
      const ever = { startTime: formatTimestamp(0), endTime: formatTimestamp(now + MS_PER_DAY) };
      const answer = await client.metrics(
        account,
        { ...ever, resolution: 'monthly', groupBy: ['billing_dimension'] },
        { signal },
      );
      const used = answer.data.flatMap(({ timeseries }) => timeseries.filter(({ usage }) => usage !== '0'));
      const months = used.map(({ timestamp }) => timestamp).sort();
      return months.at(-1) ?? null;
    },
    enabled,
  });
}
