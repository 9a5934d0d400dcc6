/** The page's requests to the API. Every response is kept until the person refreshes. */
import {
  ENTRY_FIELD,
  type EpochMs,
  GROUP_BY_DIMENSIONS,
  MS_PER_DAY,
  parseTimestamp,
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
import { useEffect } from 'react';
import type { BreakdownSource } from '../breakdown/breakdown.js';
import { type DailyCosts, monthWindow } from '../forecast/forecast.js';
import { periodWindow } from '../period/period.js';
import { readPageSettings } from '../shell/embedding.js';
import { type Session, useSession } from '../shell/session.js';
import type { NameField, View } from '../view/view.js';
import { metricsQuery, resolutionOf, wholeQuery } from './query.js';

const BREAKDOWN_ATTEMPTS = 3;

function fresh({ maxAgeSeconds }: Session, signal: AbortSignal) {
  return { signal, maxAgeSeconds };
}

export function useAccounts() {
  const { client } = useSession();
  return useQuery({ queryKey: ['accounts'], queryFn: ({ signal }) => client.accounts({ signal }) });
}

/** The billing dimensions with the prices in force now for the account. */
export function useBillingDimensions(account: string, enabled: boolean) {
  const { client } = useSession();
  return useQuery({
    queryKey: ['billing dimensions', account],
    queryFn: ({ signal }) => client.billingDimensions(account, { signal }),
    enabled: enabled && account !== ALL_ACCOUNTS,
  });
}

/** Null: the service does not say. */
export function useCollectorUrl() {
  return useQuery({
    queryKey: ['page settings'],
    queryFn: async ({ signal }) => (await readPageSettings(signal)).collectorUrl ?? null,
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

/**
 * The first page of groups and, if there are more pages, the totals of all groups, which Other is computed from. Both are
 * requested again when events arrived between the two responses.
 */
async function fetchBreakdown(
  session: Session,
  account: string,
  query: MetricsQuery,
  whole: MetricsQuery,
  signal: AbortSignal,
): Promise<BreakdownSource> {
  for (let attempt = 1; ; attempt += 1) {
    // What differs is not read from a cache again.
    const options = attempt === 1 ? fresh(session, signal) : { signal, maxAgeSeconds: 0 };
    const first = await session.client.metrics(account, query, options);
    if (!first.meta.hasMore) return { first, whole: undefined };
    const everything = await session.client.metrics(account, whole, options);
    const agree = everything.summary.totalCost === first.summary.totalCost;
    if (agree || attempt === BREAKDOWN_ATTEMPTS) return { first, whole: everything };
  }
}

/** Without a breakdown there is always one entry; it costs nothing where nothing was used, or where that is free. */
async function hasUsage(
  session: Session,
  account: string,
  query: MetricsQuery,
  first: MetricsResponse,
  signal: AbortSignal,
) {
  const isRequested = query.groupBy?.length === 0 && first.summary.totalCost === ZERO;
  const groupBy = ['billing_dimension'] as const;
  const { data } = isRequested
    ? await session.client.metrics(account, { ...query, groupBy }, fresh(session, signal))
    : first;
  return data.length > 0;
}

/** The first page of groups and the whole. The last response stays on the page until the next one comes. */
export function useBreakdown(account: string, requested: Snapshot, filters: FilterQuery, enabled: boolean) {
  const session = useSession();
  const { view, resolution, asOf } = requested;
  const query = metricsQuery(view, { window: upTo(requested.window, asOf), resolution, filters });
  const whole = wholeQuery(view, query);
  return useQuery({
    queryKey: ['metrics', account, 'breakdown', query, whole],
    queryFn: async ({ signal }) => {
      const source = await fetchBreakdown(session, account, query, whole, signal);
      // What is known is shown also when this fails.
      const isUsed = await hasUsage(session, account, query, source.first, signal).catch(() => true);
      // The page may still show the response to the query before.
      return { ...source, isUsed, requested: { ...requested, query } };
    },
    placeholderData: keepPreviousData,
    enabled,
  });
}

/** The response to one query: its first page. @param query undefined: none is sent */
export function useMetrics<Shown = MetricsResponse>(
  account: string,
  query: MetricsQuery | undefined,
  enabled: boolean,
  options: Partial<UseQueryOptions<MetricsResponse, Error, Shown>> = {},
) {
  const session = useSession();
  return useQuery({
    queryKey: ['metrics', account, query],
    queryFn: query ? ({ signal }) => session.client.metrics(account, query, fresh(session, signal)) : skipToken,
    enabled,
    ...options,
  });
}

/** Reads one page after the other, until there are so many, or all. @param from where the first begins; empty: at the beginning */
function usePages(
  kind: 'metrics' | 'values',
  account: string,
  query: MetricsQuery,
  from: string,
  most: number,
  enabled: boolean,
) {
  const session = useSession();
  const result = useInfiniteQuery({
    queryKey: [kind, account, 'pages', query, from],
    queryFn: ({ pageParam, signal }) =>
      session.client.metrics(account, { ...query, cursor: pageParam || undefined }, fresh(session, signal)),
    initialPageParam: from,
    getNextPageParam: (last: MetricsResponse) => last.meta.nextCursor || undefined,
    select: entriesOf,
    enabled: enabled && most > 0,
  });
  const { data = NOTHING_READ, fetchNextPage, hasNextPage, isFetching, isError } = result;
  const goesOn = enabled && data.pages > 0 && data.pages < most && hasNextPage && !isFetching && !isError;
  useEffect(() => {
    if (goesOn) void fetchNextPage();
  }, [goesOn, fetchNextPage]);
  const { error, failureReason, failureCount, refetch } = result;
  return { ...data, hasNextPage, isFetching, error, failureReason, failureCount, refetch };
}

const NOTHING_READ: ReturnType<typeof entriesOf> = { entries: [], pages: 0 };

function entriesOf({ pages }: InfiniteData<MetricsResponse>) {
  return { entries: pages.flatMap(({ data }) => data), pages: pages.length };
}

/** The pages after the first, as many as are needed. */
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

/** Groups of the period before; those that `isWhole` leaves out cost nothing then. */
export interface PreviousGroups {
  readonly entries: readonly MetricsEntry[];
  /** Whether each group of the queries is there. */
  readonly isWhole: boolean;
}

/**
 * The groups of the period before that the queries ask for.
 * @param mostPages the most pages of each query; a first page alone makes the service store nothing
 */
export function usePreviousGroups(
  account: string,
  queries: readonly MetricsQuery[] | undefined,
  mostPages: number,
  enabled: boolean,
) {
  const session = useSession();
  return useQuery({
    queryKey: ['metrics', account, 'previous groups', queries, mostPages],
    queryFn: async ({ signal }): Promise<PreviousGroups> => {
      const read = (query: MetricsQuery) =>
        firstPages(session.client.metricsPages(account, query, fresh(session, signal)), mostPages);
      const parts = await Promise.all((queries ?? []).map(read));
      return { entries: parts.flatMap(({ entries }) => entries), isWhole: parts.every(({ isWhole }) => isWhole) };
    },
    enabled: enabled && queries !== undefined,
  });
}

async function firstPages(pages: AsyncGenerator<MetricsResponse>, most: number): Promise<PreviousGroups> {
  const entries: MetricsEntry[] = [];
  let read = 0;
  for await (const { data, meta } of pages) {
    entries.push(...data);
    read += 1;
    if (!meta.hasMore) return { entries, isWhole: true };
    if (read === most) break;
  }
  return { entries, isWhole: false };
}

/** What each day of the month, and of the four weeks before, cost under the filters. */
export function useDailyCosts(account: string, filters: FilterQuery, asOf: EpochMs, enabled: boolean) {
  const of = hashKey([account, filters]);
  return useMetrics(account, { ...filters, ...timesOf(monthWindow(asOf)), resolution: 'daily' }, enabled, {
    select: dailyCosts,
    meta: { of },
    // After a refresh the figure stays until the next one comes; that of other filters would be a wrong one.
    placeholderData: (last, lastQuery) => (lastQuery?.meta?.['of'] === of ? last : undefined),
  });
}

/** Without a breakdown there is one entry. */
function dailyCosts({ data: [whole] }: MetricsResponse): DailyCosts {
  const days = whole?.timeseries ?? [];
  return { days: days.map(({ timestamp }) => parseTimestamp(timestamp) ?? 0), costs: days.map(({ cost }) => cost) };
}

/** The start of the last month with any usage; null when there never was any. */
export function useLastUse(account: string, asOf: EpochMs, enabled: boolean) {
  const ever = timesOf({ startTime: 0, endTime: asOf + MS_PER_DAY });
  return useMetrics(account, { ...ever, resolution: 'monthly', groupBy: ['billing_dimension'] }, enabled, {
    select: lastMonth,
    placeholderData: keepPreviousData,
  });
}

function lastMonth({ data }: MetricsResponse): string | null {
  const used = data.flatMap(({ timeseries }) => timeseries.filter(({ usage }) => usage !== '0'));
  const months = used.map(({ timestamp }) => timestamp).sort();
  return months.at(-1) ?? null;
}

/** Ten thousand values; a list that has more says so. */
const MOST_VALUE_PAGES = 100;

/** The groups of each value of a field in the window, most expensive first. They appear page by page, until all are there. */
export function useUsedValues(
  account: string,
  field: NameField,
  window: Window,
  others: FilterQuery,
  enabled: boolean,
) {
  const groupBy = GROUP_BY_DIMENSIONS.filter((dimension) => ENTRY_FIELD[dimension] === field);
  const query: MetricsQuery = { ...others, ...timesOf(window), resolution: 'monthly', groupBy };
  const read = usePages('values', account, query, '', MOST_VALUE_PAGES, enabled);
  const isCut = read.pages === MOST_VALUE_PAGES && read.hasNextPage;
  const isError = read.failureReason !== null;
  const isLoading = read.isFetching || (read.hasNextPage && !isCut && !isError);
  return { entries: read.entries, isLoading, isCut, isError };
}
