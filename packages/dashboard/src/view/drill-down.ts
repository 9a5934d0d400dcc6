/** From a group to what it is made of: its values become filters, and the breakdown moves on to a finer dimension. */
import { ENTRY_FIELD, type EntryField, GROUP_BY_DIMENSIONS, type GroupByDimension } from '@meterline/catalog';
import type { GroupValues } from '../breakdown/group.js';
import { type Filters, type View, withFilter, withGroups } from './view.js';

/** From coarse to fine: what one asks next. */
const ORDER = [
  'workspace',
  'resource_type',
  'resource_name',
  'billing_dimension',
  'resource_uuid',
] as const satisfies readonly GroupByDimension[];

export function drillDown(view: View, values: GroupValues): View {
  let next = view;
  for (const dimension of view.groupBy) next = withGroupFilter(next, dimension, values);
  return withGroups(next, { groupBy: nextBreakdown(view.groupBy, next.filters) });
}

function withGroupFilter(view: View, dimension: GroupByDimension, values: GroupValues): View {
  switch (dimension) {
    case 'workspace':
      return withFilter(view, 'workspace', values.workspace);
    case 'resource_type':
      return withFilter(view, 'resourceType', values.resourceType);
    case 'resource_name':
      return withFilter(view, 'resourceName', values.resourceName);
    case 'resource_uuid':
      return withFilter(view, 'resourceUuid', values.resourceUuid);
    case 'billing_dimension':
      return withFilter(view, 'billingDimension', values.billingDimension);
  }
}

/** The dimension after the finest of those just left that is not fixed by a filter; none when all are. */
function nextBreakdown(left: readonly GroupByDimension[], filters: Filters): readonly GroupByDimension[] {
  const open = ORDER.filter((dimension) => !isFixed(dimension, filters) && dimension !== 'workspace');
  const finest = Math.max(...left.map((dimension) => ORDER.indexOf(dimension)));
  const next = open.find((dimension) => ORDER.indexOf(dimension) > finest) ?? open[0];
  return next ? [next] : [];
}

function isFixed(dimension: GroupByDimension, filters: Filters): boolean {
  const field: EntryField = ENTRY_FIELD[dimension];
  if (filters[field] !== undefined) return true;
  return dimension === 'resource_type' && filters.billingDimension !== undefined;
}

/** Whether anything is left to break a group down by. */
export function canDrill(view: View): boolean {
  return view.groupBy.length > 0 && GROUP_BY_DIMENSIONS.some((dimension) => !isFixed(dimension, view.filters));
}
