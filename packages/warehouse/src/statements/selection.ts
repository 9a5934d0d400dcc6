import { GROUP_BY_DIMENSIONS, type GroupByDimension, type Window } from '@meterline/catalog';
import type { Relation } from '../clickhouse/connection.js';
import { segmentParameters } from '../rollups/segment-window.js';
import type { Segment } from '../rollups/segments.js';

/** Which events a question is about: one account, a window, and values that dimensions must have. */
export interface Selection {
  readonly accountId: string;
  readonly window: Window;
  readonly filters: Readonly<Partial<Record<GroupByDimension, string>>>;
}

/** In canonical order. */
export function filteredDimensions({ filters }: Selection): GroupByDimension[] {
  return GROUP_BY_DIMENSIONS.filter((dimension) => filters[dimension] !== undefined);
}

export function selectionParameters(
  { accountId, filters }: Selection,
  segments: readonly Segment[],
): Relation['query_params'] {
  const windows = segments.map((segment, index) => segmentParameters(segment, index));
  return { account_id: accountId, ...Object.assign({}, ...windows), ...filters };
}
