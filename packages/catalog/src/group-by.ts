/**
 * The groupBy dimensions, their canonical order, and which fields of an answer each fills.
 * Source: the API specification, section "Billing API", parameter `groupBy` and table AccountMetricsDataEntry.
 */

/** In canonical order. */
export const GROUP_BY_DIMENSIONS = [
  'workspace',
  'resource_type',
  'resource_name',
  'resource_uuid',
  'billing_dimension',
] as const;
export type GroupByDimension = (typeof GROUP_BY_DIMENSIONS)[number];

/** Of an answer about several accounts, which is an extension. In canonical order. */
export const METRICS_DIMENSIONS = ['account', ...GROUP_BY_DIMENSIONS] as const;
export type MetricsDimension = (typeof METRICS_DIMENSIONS)[number];

export const MAX_GROUP_BY_DIMENSIONS = 3;

/** The member of a data entry that carries a dimension. */
export const ENTRY_FIELD = {
  account: 'account',
  workspace: 'workspace',
  resource_type: 'resourceType',
  resource_name: 'resourceName',
  resource_uuid: 'resourceUuid',
  billing_dimension: 'billingDimension',
} as const satisfies Record<MetricsDimension, string>;
export type MetricsField = (typeof ENTRY_FIELD)[MetricsDimension];
/** In an answer about one account. */
export type EntryField = (typeof ENTRY_FIELD)[GroupByDimension];

/** For people: what usage of a group has, where an entry leaves the field out. */
export const SEVERAL_VALUES = {
  account: 'several accounts',
  workspace: 'several workspaces',
  resourceType: 'several types',
  resourceName: 'several names',
  resourceUuid: 'several instances',
  billingDimension: 'several dimensions',
} as const satisfies Record<MetricsField, string>;

/** What else an entry shows when it is grouped by a dimension, where all usage of the group has the same. */
export const ENRICHED_BY = {
  account: [],
  workspace: [],
  resource_type: [],
  resource_name: ['workspace', 'resource_type'],
  resource_uuid: ['workspace', 'resource_type', 'resource_name'],
  billing_dimension: ['resource_type'],
} as const satisfies Record<MetricsDimension, readonly GroupByDimension[]>;

/** The dimensions in canonical order, whatever order they came in. */
export function canonicalGroupBy<Dimension extends MetricsDimension>(dimensions: Iterable<Dimension>): Dimension[] {
  const wanted = new Set<MetricsDimension>(dimensions);
  return METRICS_DIMENSIONS.filter((dimension): dimension is Dimension => wanted.has(dimension));
}

/** Dimensions that entries show without being grouped by them, in canonical order. */
export function enrichedDimensions(groupBy: readonly MetricsDimension[]): GroupByDimension[] {
  const enriched = new Set<GroupByDimension>(groupBy.flatMap((dimension) => ENRICHED_BY[dimension]));
  return GROUP_BY_DIMENSIONS.filter((dimension) => enriched.has(dimension) && !groupBy.includes(dimension));
}

/** Identifies a group, in any window. */
export function groupKey(
  group: { readonly [Field in MetricsField]?: string | undefined },
  groupBy: readonly MetricsDimension[],
): string {
  return JSON.stringify(groupBy.map((dimension) => group[ENTRY_FIELD[dimension]] ?? null));
}

/** Usage is shown only where a group has a single unit, that is, when grouped by billing dimension. */
export function showsUsage(groupBy: readonly MetricsDimension[]): boolean {
  return groupBy.includes('billing_dimension');
}
