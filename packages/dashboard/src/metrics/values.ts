/** All values that a dimension has in a window, for lists to choose from. */
import type { DecimalText, GroupByDimension, Window } from '@meterline/catalog';
import type { FilterQuery, MetricsQuery } from '@meterline/client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useSession } from '../shell/session.js';
import type { NameField } from '../view/filters.js';
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

function valuesQuery(field: NameField, window: Window, others: FilterQuery): MetricsQuery {
  return { ...others, ...timesOf(window), resolution: 'monthly', groupBy: [NAME_DIMENSION[field]] };
}
