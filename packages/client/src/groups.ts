/** Queries for some groups of a response alone, such as what the groups of a page cost in an earlier period. */
import type { FilterQuery, MetricsEntry, MetricsQuery } from '@meterline/catalog';
import {
  ENTRY_FIELD,
  EXCLUDING_PARAMETER,
  groupKey,
  MAX_FILTER_VALUES,
  type MetricsDimension,
} from '@meterline/catalog/plain';

/** A group by the values of its dimensions. An empty resourceUuid stands for resources without one. */
export type GroupValues = Partial<Pick<MetricsEntry, (typeof ENTRY_FIELD)[MetricsDimension]>>;

const GROUPS_IN_QUERY = 25;
/** URL-encoded bytes of the groups' names in one query. The API accepts 24 KiB, headers included. */
const LONGEST_NAMES = 12_000;
/** If fewer groups fit, one query reads all groups; its first page may lack some. */
const LEAST_IN_QUERY = 5;

const FILTERS = [...Object.entries(EXCLUDING_PARAMETER).flat(), 'withoutResourceUuid', 'excludeWithoutResourceUuid'];

/** The query for these groups alone, in parts. Several dimensions may find a few more groups. */
export function queriesOfGroups(query: MetricsQuery, groups: readonly GroupValues[]): MetricsQuery[] {
  const { groupBy = [] } = query;
  const kept = Object.entries(filteredByGroups(query, groupBy, [])).flatMap(([name, value]) =>
    FILTERS.includes(name) ? (value ?? []) : [],
  );
  const room = Math.floor((MAX_FILTER_VALUES - kept.length) / Math.max(1, groupBy.length));
  const size = Math.min(GROUPS_IN_QUERY, room);
  if (size < LEAST_IN_QUERY) return [query];
  const parts: GroupValues[][] = [];
  let length = 0;
  for (const group of groups) {
    const own = encodeURIComponent(groupKey(group, groupBy)).length;
    const part = parts.at(-1);
    const fits = part && part.length < size && length + own <= LONGEST_NAMES;
    if (fits) part.push(group);
    else parts.push([group]);
    length = fits ? length + own : own;
  }
  return parts.map((part) => filteredByGroups(query, groupBy, part));
}

/** The query with the values of these groups, which pass its filters, in place of the filters of the dimensions. */
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
