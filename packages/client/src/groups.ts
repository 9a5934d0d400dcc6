/** Builds queries that return only certain groups, for example to read the previous month's costs of the groups on a page. */
import type { FilterQuery, MetricsEntry, MetricsQuery } from '@meterline/catalog';
import {
  ENTRY_FIELD,
  EXCLUDING_PARAMETER,
  groupKey,
  MAX_FILTER_VALUES,
  type MetricsDimension,
} from '@meterline/catalog/plain';

/** Identifies a group by its dimension values. An empty `resourceUuid` means resources without a UUID. */
export type GroupValues = Partial<Pick<MetricsEntry, (typeof ENTRY_FIELD)[MetricsDimension]>>;

const MAX_GROUPS_IN_QUERY = 25;
/** Maximum URL-encoded bytes of group names in one query. The API accepts 24 KiB for the URL and the headers together. */
const MAX_NAMES_BYTES = 12_000;
/** If fewer groups than this fit into a query, one query for all groups is sent. Its first page may then lack some of the groups. */
const MIN_GROUPS_IN_QUERY = 5;

const FILTERS = [...Object.entries(EXCLUDING_PARAMETER).flat(), 'withoutResourceUuid', 'excludeWithoutResourceUuid'];

/**
 * Returns queries that together cover the groups. With several dimensions, their responses may include other groups too, because each
 * dimension is filtered separately.
 */
export function queriesOfGroups(query: MetricsQuery, groups: readonly GroupValues[]): MetricsQuery[] {
  const { groupBy = [] } = query;
  const kept = Object.entries(filteredByGroups(query, groupBy, [])).flatMap(([name, value]) =>
    FILTERS.includes(name) ? (value ?? []) : [],
  );
  const room = Math.floor((MAX_FILTER_VALUES - kept.length) / Math.max(1, groupBy.length));
  const size = Math.min(MAX_GROUPS_IN_QUERY, room);
  if (size < MIN_GROUPS_IN_QUERY) return [query];
  const parts: GroupValues[][] = [];
  let length = 0;
  for (const group of groups) {
    const own = encodeURIComponent(groupKey(group, groupBy)).length;
    const part = parts.at(-1);
    const fits = part && part.length < size && length + own <= MAX_NAMES_BYTES;
    if (fits) part.push(group);
    else parts.push([group]);
    length = fits ? length + own : own;
  }
  return parts.map((part) => filteredByGroups(query, groupBy, part));
}

/**
 * Adds filters for the values of the groups. The new filters replace the query's filters of the same dimensions. Nothing is lost, because
 * the groups come from a response to the query and so already match its filters.
 */
export function filteredByGroups<Query extends FilterQuery>(
  query: Query,
  groupBy: readonly MetricsDimension[],
  groups: readonly GroupValues[],
): Query {
  const filters = groupBy.flatMap((dimension) => {
    const field = ENTRY_FIELD[dimension];
    const values = [...new Set(groups.map((group) => group[field] ?? ''))].filter((value) => value !== '');
    return [
      [field, values.length > 0 ? values : undefined],
      [EXCLUDING_PARAMETER[field], undefined],
    ];
  });
  const withoutUuid = groupBy.includes('resource_uuid') && {
    withoutResourceUuid: groups.some(({ resourceUuid }) => resourceUuid === '') || undefined,
    excludeWithoutResourceUuid: undefined,
  };
  return { ...query, ...Object.fromEntries(filters), ...withoutUuid };
}
