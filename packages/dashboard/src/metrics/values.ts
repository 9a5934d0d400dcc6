/** All values that a dimension has in a window: for lists to choose from, and to ask for all but some. */
import type { DecimalText, GroupByDimension, Window } from '@meterline/catalog';
import type { FilterQuery, MeterlineClient, MetricsQuery } from '@meterline/client';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useSession } from '../shell/session.js';
import { excludedNames, type Filters, type NameField } from '../view/filters.js';
import { FilterProblem, filterQuery, type KnownValues, readNames } from './filter-query.js';
import { timesOf } from './question.js';

/** Ten thousand values; a list that has more says so. */
const MOST_PAGES = 100;

export const NAME_DIMENSION = {
  workspace: 'workspace',
  resourceName: 'resource_name',
  resourceUuid: 'resource_uuid',
} as const satisfies Record<NameField, GroupByDimension>;

export interface UsedValue {
  readonly value: string;
  readonly cost: DecimalText;
}

/** The values of a field in the window, most expensive first. They appear page by page, until all are there. */
export function useUsedValues(
  account: string,
  field: NameField,
  window: Window,
  others: FilterQuery,
  enabled: boolean,
) {
  const { client } = useSession();
  const query = valuesQuery(field, window, others);
  const { data, fetchNextPage, hasNextPage, isFetching, isError } = useInfiniteQuery({
    queryKey: ['metrics', account, 'values', query],
    queryFn: ({ pageParam, signal }) => client.metrics(account, { ...query, cursor: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last, pages) => (pages.length < MOST_PAGES && last.meta.nextCursor) || undefined,
    enabled,
  });
  useEffect(() => {
    if (enabled && hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [enabled, hasNextPage, isFetching, isError, fetchNextPage]);
  const values = (data?.pages ?? []).flatMap((page) =>
    page.data.map((entry): UsedValue => ({ value: entry[field] ?? '', cost: entry.summary.cost })),
  );
  return {
    values,
    isLoading: isFetching || hasNextPage,
    isCut: data?.pages.length === MOST_PAGES && data.pages.at(-1)?.meta.hasMore === true,
    isError,
  };
}

/**
 * The filters as the API takes them. Where names are excluded, the names of the window are read first.
 * @param window holds every window that the answer is used for
 */
export function useFilterQuery(account: string, filters: Filters, window: Window, enabled: boolean) {
  const { client } = useSession();
  const excluded = Object.fromEntries(excludedNames(filters).map((field) => [field, filters[field]]));
  const needed = excludedNames(filters).length > 0;
  const known = useQuery({
    queryKey: ['metrics', account, 'known values', excluded, window],
    queryFn: ({ signal }) => readKnownValues(client, account, excluded, window, signal),
    enabled: enabled && needed,
  });
  if (needed && !known.data) return { query: undefined, error: known.error, refetch: known.refetch };
  try {
    return { query: filterQuery(filters, known.data ?? {}), error: null, refetch: known.refetch };
  } catch (error) {
    if (error instanceof FilterProblem) return { query: undefined, error, refetch: known.refetch };
    throw error;
  }
}

async function readKnownValues(
  client: MeterlineClient,
  account: string,
  excluded: Filters,
  window: Window,
  signal: AbortSignal,
): Promise<KnownValues> {
  const known: Partial<Record<NameField, readonly string[]>> = {};
  for (const field of excludedNames(excluded)) {
    const pages = client.metricsPages(account, valuesQuery(field, window), { signal });
    known[field] = await readNames(pages, field, excluded[field]);
  }
  return known;
}

function valuesQuery(field: NameField, window: Window, others: FilterQuery = {}): MetricsQuery {
  return { ...others, ...timesOf(window), resolution: 'monthly', groupBy: [NAME_DIMENSION[field]] };
}
