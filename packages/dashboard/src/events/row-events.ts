/** The question for the events behind a row of the table, and filters in words. */
import {
  ENTRY_FIELD,
  EXCLUDING_PARAMETER,
  GROUP_BY_DIMENSIONS,
  type MetricsDimension,
  parseTimestamp,
} from '@meterline/catalog';
import type { EventsQuery, FilterQuery, MetricsQuery } from '@meterline/client';
import { DIMENSION_LABEL, valueLabel } from '../breakdown/texts.js';
import { windowText } from '../period/period.js';
import type { DimensionValues } from '../view/view.js';

/**
 * The window and the filters of the table, and of each dimension that it is grouped by the value of the row: that value passes
 * the filters.
 */
export function rowEventsQuery(
  {
    startTime,
    endTime,
    resolution: _resolution,
    groupBy: _groupBy,
    limit: _limit,
    cursor: _cursor,
    ...filters
  }: MetricsQuery,
  groupBy: readonly MetricsDimension[],
  values: DimensionValues,
): EventsQuery {
  const own = Object.fromEntries(
    groupBy.flatMap((dimension) => {
      const field = ENTRY_FIELD[dimension];
      return [[field, values[field]] as const, [EXCLUDING_PARAMETER[field], undefined] as const];
    }),
  );
  const query: EventsQuery = { startTime, endTime, ...filters, ...own };
  if (!groupBy.includes('resource_uuid')) return query;
  // The API has a parameter of its own for what has no instance id.
  return values.resourceUuid === ''
    ? { ...query, resourceUuid: undefined, withoutResourceUuid: true, excludeWithoutResourceUuid: undefined }
    : { ...query, withoutResourceUuid: undefined, excludeWithoutResourceUuid: undefined };
}

/** The window and the filters in words: `14 Nov 2025 · Resource type: Agent`. */
export function scopeText(query: EventsQuery): string {
  const [startTime = 0, endTime = 0] = [query.startTime, query.endTime].map(
    (time) => parseTimestamp(String(time)) ?? 0,
  );
  return [windowText({ startTime, endTime }), ...filterTexts(query)].join(' · ');
}

/** `Resource type: Agent or Job`, `Workspace: all but main`. */
export function filterTexts(query: FilterQuery): string[] {
  return GROUP_BY_DIMENSIONS.flatMap((dimension) => {
    const field = ENTRY_FIELD[dimension];
    const isUuid = field === 'resourceUuid';
    const labels = (without: boolean | undefined, named: string | readonly string[] = []) =>
      [...(isUuid && without ? [''] : []), ...[named].flat()].map((value) => valueLabel(field, value));
    const included = labels(query.withoutResourceUuid, query[field]);
    const excluded = labels(query.excludeWithoutResourceUuid, query[EXCLUDING_PARAMETER[field]]);
    return [
      ...(included.length > 0 ? [`${DIMENSION_LABEL[dimension]}: ${included.join(' or ')}`] : []),
      ...(excluded.length > 0 ? [`${DIMENSION_LABEL[dimension]}: all but ${excluded.join(' and ')}`] : []),
    ];
  });
}
