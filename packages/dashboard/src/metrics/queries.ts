/** What the page asks of the API, and when. Everything is kept until the person refreshes. */
import { type EpochMs, formatTimestamp, MS_PER_DAY, type Window } from '@meterline/catalog';
import type { MeterlineClient, MetricsAnswer, MetricsEntry, MetricsQuery } from '@meterline/client';
import { keepPreviousData, type QueryClient, queryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useSession } from '../session/session.js';
import type { View } from '../view/view.js';
import { fetchBreakdown } from './fetch-breakdown.js';
import { metricsQuery, wholeQuery, windowOf } from './request.js';

/** Of the API: the most groups on a page. */
export const API_PAGE_SIZE = 100;
/** Groups of the period before that a comparison takes in; those after them are too small to matter. */
const MOST_COMPARED_PAGES = 50;

function accountsQuery(client: MeterlineClient) {
  return queryOptions({ queryKey: ['accounts'], queryFn: ({ signal }) => client.accounts({ signal }) });
}

export function useAccounts() {
  return useQuery(accountsQuery(useSession().client));
}

function breakdownQuery(client: MeterlineClient, account: string, view: View, now: EpochMs) {
  const window = windowOf(view, now);
  const query = metricsQuery(view, window);
  const whole = wholeQuery(view, query);
  return queryOptions({
    queryKey: ['metrics', account, 'breakdown', query, whole],
    queryFn: async ({ signal }) => ({
      ...(await fetchBreakdown(client, account, query, whole, signal)),
      // What is on the page may be the answer to the question before.
      asked: { view, window },
    }),
  });
}

/** The first page of groups and what they are a part of. The last answer stays on the page until the next is there. */
export function useBreakdown(account: string, view: View, now: EpochMs, enabled: boolean) {
  const { client } = useSession();
  return useQuery({ ...breakdownQuery(client, account, view, now), placeholderData: keepPreviousData, enabled });
}

/** Asks for what the first view needs while the page is still being built. */
export function prefetchFirstView(queries: QueryClient, client: MeterlineClient, view: View, now: EpochMs): void {
  void queries.prefetchQuery(accountsQuery(client));
  if (view.account !== undefined) void queries.prefetchQuery(breakdownQuery(client, view.account, view, now));
}

/** The pages after the first, fetched as far as they are needed. */
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
  /** Bucket by bucket, of everything. */
  readonly whole: MetricsAnswer;
  readonly entries: readonly MetricsEntry[];
}

/** The period before, with every group: each row of the table has one to be compared with. */
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

/** One figure, under the filters of the view. */
export function useTotal(account: string, filters: object, window: Window | undefined, enabled: boolean) {
  const { client } = useSession();
  return useQuery({
    queryKey: ['metrics', account, 'total', filters, window],
    queryFn: async ({ signal }) => {
      if (!window) return null;
      const times = { startTime: formatTimestamp(window.startTime), endTime: formatTimestamp(window.endTime) };
      const query = { ...filters, ...times, resolution: 'monthly' } as const;
      return (await client.metrics(account, query, { signal })).summary.totalCost;
    },
    enabled: enabled && window !== undefined,
  });
}

/** Of all time: the start of the last month with any usage; null when there never was any. */
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
      return (
        used
          .map(({ timestamp }) => timestamp)
          .sort()
          .at(-1) ?? null
      );
    },
    enabled,
  });
}
