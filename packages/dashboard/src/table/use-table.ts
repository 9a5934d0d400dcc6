/** Reads the rows of the table of groups: further pages, search, sorting, and the costs of the previous period. */
import { MAX_METRICS_PAGE } from '@meterline/catalog/plain';
import { queriesOfGroups } from '@meterline/client';
import { useMemo } from 'react';
import type { Comparison } from '../account/use-comparison.js';
import type { Costs } from '../account/use-costs.js';
import { useAccountNames, useFurtherPages, usePreviousGroups } from '../metrics/queries.js';
import { needsAllGroups, previousCostIn, rowOf, searchRows, sortRows } from './rows.js';

/** Maximum number of pages for a view that needs all groups. Beyond it, the table shows a note that it is incomplete. */
const MAX_PAGES = 100;

export function useTable({ account, view, query, first }: Costs, { compared, previousQuery, isReady }: Comparison) {
  const { groupBy, sort, search, pageSize } = view;
  const needsAll = needsAllGroups(view);
  // If groups have very many buckets, the API returns fewer groups than the maximum per page.
  const groupsOnPage = first?.meta.hasMore ? Math.max(1, first.data.length) : MAX_METRICS_PAGE;
  const neededPages = needsAll ? MAX_PAGES : Math.ceil((view.page * pageSize) / groupsOnPage);
  const further = useFurtherPages(account, query, first, neededPages - 1);
  // Between two pages, no request is running for a moment, although more pages follow.
  const isBetweenPages = further.hasMore && further.pages < MAX_PAGES - 1 && !further.error;
  const isReadingAll = needsAll && (further.isFetching || isBetweenPages);
  const names = useAccountNames();
  const found = useMemo(() => {
    // The table shows no rows until all groups are loaded, so do not sort them after each page.
    if (isReadingAll) return [];
    const rows = [...(first?.data ?? []), ...further.entries].map((entry) => rowOf(entry, groupBy, names));
    return sortRows(searchRows(rows, search), sort);
  }, [isReadingAll, first, further.entries, groupBy, names, sort, search]);
  const isReading = isReadingAll || (!needsAll && further.hasMore && found.length < view.page * pageSize);
  // A link may have the number of a page that no longer exists.
  const page = isReading ? view.page : Math.max(1, Math.min(view.page, Math.ceil(found.length / pageSize)));
  const from = (page - 1) * pageSize;

  // Sorting by change needs the previous costs of all groups. Any other view needs only the previous costs of the visible rows.
  const sortsByChange = sort.column === 'change';
  const visible = found.slice(from, from + pageSize).map(({ entry }) => entry);
  const previousQueries = previousQuery && (sortsByChange ? [previousQuery] : queriesOfGroups(previousQuery, visible));
  const previousGroups = usePreviousGroups(
    account,
    previousQueries,
    sortsByChange ? MAX_PAGES : 1,
    isReady && !isReading,
  );
  const rows = useMemo(() => {
    if (!compared) return found;
    const previousCost = previousCostIn(previousGroups.data, groupBy);
    const priced = found.map((row) => ({ ...row, previousCost: previousCost(row.key) }));
    return sortsByChange ? sortRows(priced, sort) : priced;
  }, [found, compared, previousGroups.data, groupBy, sortsByChange, sort]);

  return {
    /** All rows that match the search. `from` is the index of the first row on the page. */
    rows,
    from,
    page,
    isReading,
    needsAll,
    further,
    previousGroups,
    isComparing: isReady && !previousGroups.error && previousGroups.isFetching,
  };
}

export type Table = ReturnType<typeof useTable>;
