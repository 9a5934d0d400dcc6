/** Sends the page's requests to the API. Responses stay in the cache until the next refresh. */
import {
  addDimensions,
  type DailyCosts,
  ENTRY_FIELD,
  type EpochMs,
  GROUP_BY_DIMENSIONS,
  MS_PER_DAY,
  monthWindow,
  parseTimestamp,
  periodWindow,
  type Resolution,
  timesOf,
  upTo,
  type Window,
  ZERO,
} from '@meterline/catalog/plain';
import {
  ALL_ACCOUNTS,
  type FilterQuery,
  type MetricsEntry,
  type MetricsQuery,
  type MetricsResponse,
} from '@meterline/client';
import {
  hashKey,
  type InfiniteData,
  keepPreviousData,
  skipToken,
  type UseQueryOptions,
  useInfiniteQuery,
  useQuery,
} from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import type { BreakdownSource } from '../breakdown/breakdown.js';
import { readPageSettings } from '../shell/service.js';
import { type Session, useSession } from '../shell/session.js';
import type { AccountNames, NameField, View } from '../view/view.js';
import { metricsQuery, resolutionOf, wholeQuery } from './query.js';

const BREAKDOWN_ATTEMPTS = 3;

function cacheOptions({ maxAgeSeconds }: Session, signal: AbortSignal) {
  return { signal, maxAgeSeconds };
}

export function useAccounts() {
  const { client } = useSession();
  return useQuery({ queryKey: ['accounts'], queryFn: ({ signal }) => client.accounts({ signal }) });
}

export function useAccountNames(): AccountNames {
  const { data } = useAccounts();
  return useMemo(() => new Map(data?.map(({ id, name }) => [id, name])), [data]);
}

/** Reads the billing dimensions with the account's prices. Makes the page aware of dimensions that the platform has added. */
export function useBillingDimensions(account: string | undefined, enabled = true) {
  const { client } = useSession();
  return useQuery({
    queryKey: ['billing dimensions', account],
    queryFn: async ({ signal }) => {
      const dimensions = await client.billingDimensions(account ?? '', { signal });
      addDimensions(dimensions);
      return dimensions;
    },
    enabled: enabled && account !== undefined && account !== ALL_ACCOUNTS,
  });
}

/** Reads the address of the collector. The result is null if the service does not know the address. */
export function useCollectorUrl() {
  return useQuery({
    queryKey: ['page settings'],
    queryFn: async ({ signal }) => (await readPageSettings(signal)).collectorUrl ?? null,
    retry: false,
  });
}

export interface Snapshot {
  readonly view: View;
  /** The whole period, including the part after `asOf`, which has no data yet. */
  readonly window: Window;
  readonly resolution: Resolution;
  readonly asOf: EpochMs;
}

export function snapshotOf(view: View, asOf: EpochMs): Snapshot {
  const window = periodWindow(view.period, asOf);
  return { view, window, resolution: resolutionOf(view, window), asOf };
}

/**
 * Reads the first page of groups and, if there are more pages, the totals of all groups. The chart shows all unlisted groups as one series,
 * the totals minus the listed groups, so both must have the same data. If events arrived between the two requests, reads both again.
 */
async function fetchBreakdown(
  session: Session,
  account: string,
  query: MetricsQuery,
  whole: MetricsQuery,
  signal: AbortSignal,
): Promise<BreakdownSource> {
  for (let attempt = 1; ; attempt += 1) {
    // Bypass the cache on a retry, because the cached responses would differ again.
    const options = attempt === 1 ? cacheOptions(session, signal) : { signal, maxAgeSeconds: 0 };
    const first = await session.client.metrics(account, query, options);
    if (!first.meta.hasMore) return { first, whole: undefined };
    const everything = await session.client.metrics(account, whole, options);
    const agree = everything.summary.totalCost === first.summary.totalCost;
    if (agree || attempt === BREAKDOWN_ATTEMPTS) return { first, whole: everything };
  }
}

/** Returns whether there was any usage. Without groups and without a cost, sends another query, because free usage has no cost. */
async function hasUsage(
  session: Session,
  account: string,
  query: MetricsQuery,
  first: MetricsResponse,
  signal: AbortSignal,
) {
  const isUnknown = query.groupBy?.length === 0 && first.summary.totalCost === ZERO;
  const groupBy = ['billing_dimension'] as const;
  const { data } = isUnknown
    ? await session.client.metrics(account, { ...query, groupBy }, cacheOptions(session, signal))
    : first;
  return data.length > 0;
}

/** Reads the first page of groups and the totals. Until a response arrives, returns the response to the previous query. */
export function useBreakdown(account: string, requested: Snapshot, filters: FilterQuery, enabled: boolean) {
  const session = useSession();
  const { view, resolution, asOf } = requested;
  const query = metricsQuery(view, { window: upTo(requested.window, asOf), resolution, filters });
  const whole = wholeQuery(view, query);
  return useQuery({
    queryKey: ['metrics', account, 'breakdown', query, whole],
    queryFn: async ({ signal }) => {
      const source = await fetchBreakdown(session, account, query, whole, signal);
      // If this query fails, assume that there was usage, so that the page still shows the breakdown.
      const isUsed = await hasUsage(session, account, query, source.first, signal).catch(() => true);
      // Keep the request with its response, because the page may show this response while it waits for the response to the next query.
      return { ...source, isUsed, requested: { ...requested, query } };
    },
    placeholderData: keepPreviousData,
    enabled,
  });
}

/** Reads the first page of a query. @param query if undefined, no request is sent */
export function useMetrics<Shown = MetricsResponse>(
  account: string,
  query: MetricsQuery | undefined,
  enabled: boolean,
  options: Partial<UseQueryOptions<MetricsResponse, Error, Shown>> = {},
) {
  const session = useSession();
  return useQuery({
    queryKey: ['metrics', account, query],
    queryFn: query ? ({ signal }) => session.client.metrics(account, query, cacheOptions(session, signal)) : skipToken,
    enabled,
    ...options,
  });
}

/** Reads pages one after another, at most `maxPages`. @param from the cursor of the first page to read; empty for the beginning */
function usePages(
  kind: 'metrics' | 'values',
  account: string,
  query: MetricsQuery,
  from: string,
  maxPages: number,
  enabled: boolean,
) {
  const session = useSession();
  const result = useInfiniteQuery({
    queryKey: [kind, account, 'pages', query, from],
    queryFn: ({ pageParam, signal }) =>
      session.client.metrics(account, { ...query, cursor: pageParam || undefined }, cacheOptions(session, signal)),
    initialPageParam: from,
    getNextPageParam: (last: MetricsResponse) => last.meta.nextCursor || undefined,
    select: entriesOf,
    enabled: enabled && maxPages > 0,
  });
  const { data = NOTHING_READ, fetchNextPage, hasNextPage, isFetching, isError } = result;
  const hasNext = enabled && data.pages > 0 && data.pages < maxPages && hasNextPage && !isFetching && !isError;
  useEffect(() => {
    if (hasNext) void fetchNextPage();
  }, [hasNext, fetchNextPage]);
  const { error, failureReason, refetch } = result;
  return { ...data, hasNextPage, isFetching, error, failureReason, refetch };
}

const NOTHING_READ: ReturnType<typeof entriesOf> = { entries: [], pages: 0 };

function entriesOf({ pages }: InfiniteData<MetricsResponse>) {
  return { entries: pages.flatMap(({ data }) => data), pages: pages.length };
}

export function useFurtherPages(
  account: string,
  query: MetricsQuery,
  first: MetricsResponse | undefined,
  pages: number,
) {
  const cursor = first?.meta.nextCursor ?? '';
  const further = usePages('metrics', account, query, cursor, pages, cursor !== '');
  return { ...further, hasMore: cursor !== '' && (further.pages === 0 || further.hasNextPage) };
}

export interface PreviousGroups {
  readonly entries: readonly MetricsEntry[];
  /** Whether all groups were read. A group that is missing from a complete result had no cost. */
  readonly isComplete: boolean;
}

/** Reads the groups of the previous period. @param maxPages maximum per query. With 1, the service need not store the result. */
export function usePreviousGroups(
  account: string,
  queries: readonly MetricsQuery[] | undefined,
  maxPages: number,
  enabled: boolean,
) {
  const session = useSession();
  return useQuery({
    queryKey: ['metrics', account, 'previous groups', queries, maxPages],
    queryFn: async ({ signal }): Promise<PreviousGroups> => {
      const read = (query: MetricsQuery) =>
        firstPages(session.client.metricsPages(account, query, cacheOptions(session, signal)), maxPages);
      const parts = await Promise.all((queries ?? []).map(read));
      return {
        entries: parts.flatMap(({ entries }) => entries),
        isComplete: parts.every(({ isComplete }) => isComplete),
      };
    },
    enabled: enabled && queries !== undefined,
  });
}

async function firstPages(pages: AsyncGenerator<MetricsResponse>, maxPages: number): Promise<PreviousGroups> {
  const entries: MetricsEntry[] = [];
  let read = 0;
  for await (const { data, meta } of pages) {
    entries.push(...data);
    read += 1;
    if (!meta.hasMore) return { entries, isComplete: true };
    if (read === maxPages) break;
  }
  return { entries, isComplete: false };
}

/** Reads the daily costs of the current month and of the four weeks before today. */
export function useDailyCosts(account: string, filters: FilterQuery, asOf: EpochMs, enabled: boolean) {
  const scope = hashKey([account, filters]);
  return useMetrics(account, { ...filters, ...timesOf(monthWindow(asOf)), resolution: 'daily' }, enabled, {
    select: dailyCosts,
    meta: { scope },
    // During a refresh, keep the previous figure visible. After a change of the account or filters, hide it, because it would be wrong.
    placeholderData: (last, lastQuery) => (lastQuery?.meta?.['scope'] === scope ? last : undefined),
  });
}

/** Converts a response without a breakdown, which has a single entry. */
function dailyCosts({ data: [whole] }: MetricsResponse): DailyCosts {
  const days = whole?.timeseries ?? [];
  return { days: days.map(({ timestamp }) => parseTimestamp(timestamp) ?? 0), costs: days.map(({ cost }) => cost) };
}

/** Reads the start of the last month with usage. The result is null if there was never any usage. */
export function useLastUse(account: string, asOf: EpochMs, enabled: boolean) {
  const allTime = timesOf({ startTime: 0, endTime: asOf + MS_PER_DAY });
  return useMetrics(account, { ...allTime, resolution: 'monthly', groupBy: ['billing_dimension'] }, enabled, {
    select: lastMonth,
    placeholderData: keepPreviousData,
  });
}

function lastMonth({ data }: MetricsResponse): string | null {
  const used = data.flatMap(({ timeseries }) => timeseries.filter(({ usage }) => usage !== '0'));
  const months = used.map(({ timestamp }) => timestamp).sort();
  return months.at(-1) ?? null;
}

/** Limits the list to 10,000 values, at 100 values per page. */
const MAX_VALUE_PAGES = 100;

/** Reads the values of a field that were used in the window, most expensive first. The list grows page by page. */
export function useUsedValues(
  account: string,
  field: NameField,
  window: Window,
  others: FilterQuery,
  enabled: boolean,
) {
  const groupBy = GROUP_BY_DIMENSIONS.filter((dimension) => ENTRY_FIELD[dimension] === field);
  const query: MetricsQuery = { ...others, ...timesOf(window), resolution: 'monthly', groupBy };
  const read = usePages('values', account, query, '', MAX_VALUE_PAGES, enabled);
  const isCut = read.pages === MAX_VALUE_PAGES && read.hasNextPage;
  const isError = read.failureReason !== null;
  const isLoading = read.isFetching || (read.hasNextPage && !isCut && !isError);
  return { entries: read.entries, isLoading, isCut, isError };
}
