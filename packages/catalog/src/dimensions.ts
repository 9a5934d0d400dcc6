/**
 * Defines resource types, billing dimensions with their units, and the groupBy dimensions with their fields in a response. Source: the API
 * specification, section "Billing API": the table of billing dimensions (whose order is kept), the parameter `groupBy`, and the table
 * AccountMetricsDataEntry.
 */

export const RESOURCE_TYPES = ['sandbox', 'agent', 'job', 'mcp_server', 'volume', 'custom_domain'] as const;
export type ResourceType = (typeof RESOURCE_TYPES)[number];

/** The unit `gbs` means GB-seconds, `count` means discrete events (whole numbers), and `hours` means active hours. */
export const UNITS = ['gbs', 'count', 'hours'] as const;
export type Unit = (typeof UNITS)[number];

export const DIMENSIONS = {
  sandbox_compute_runtime_gbs: { resourceType: 'sandbox', unit: 'gbs' },
  sandbox_image_storage_gbs: { resourceType: 'sandbox', unit: 'gbs' },
  sandbox_snapshot_storage_gbs: { resourceType: 'sandbox', unit: 'gbs' },
  agent_compute_runtime_gbs: { resourceType: 'agent', unit: 'gbs' },
  agent_image_storage_gbs: { resourceType: 'agent', unit: 'gbs' },
  agent_async_requests_count: { resourceType: 'agent', unit: 'count' },
  job_compute_runtime_gbs: { resourceType: 'job', unit: 'gbs' },
  job_image_storage_gbs: { resourceType: 'job', unit: 'gbs' },
  mcp_server_compute_runtime_gbs: { resourceType: 'mcp_server', unit: 'gbs' },
  mcp_server_image_storage_gbs: { resourceType: 'mcp_server', unit: 'gbs' },
  volume_storage_gbs: { resourceType: 'volume', unit: 'gbs' },
  custom_domain_active_time_hours: { resourceType: 'custom_domain', unit: 'hours' },
} as const satisfies Record<string, { readonly resourceType: ResourceType; readonly unit: Unit }>;

export type BillingDimension = keyof typeof DIMENSIONS;

export const BILLING_DIMENSIONS = Object.keys(DIMENSIONS) as readonly BillingDimension[];

export function isResourceType(value: string): value is ResourceType {
  return (RESOURCE_TYPES as readonly string[]).includes(value);
}

export function isBillingDimension(value: string): value is BillingDimension {
  return Object.hasOwn(DIMENSIONS, value);
}

/** In canonical order. */
export const GROUP_BY_DIMENSIONS = [
  'workspace',
  'resource_type',
  'resource_name',
  'resource_uuid',
  'billing_dimension',
] as const;
export type GroupByDimension = (typeof GROUP_BY_DIMENSIONS)[number];

/** The dimensions of queries about several accounts, in canonical order. Such queries are an extension of the platform's API. */
export const METRICS_DIMENSIONS = ['account', ...GROUP_BY_DIMENSIONS] as const;
export type MetricsDimension = (typeof METRICS_DIMENSIONS)[number];

export const MAX_GROUP_BY_DIMENSIONS = 3;

/** Maps a dimension to the field of a response entry that contains its value. */
export const ENTRY_FIELD = {
  account: 'account',
  workspace: 'workspace',
  resource_type: 'resourceType',
  resource_name: 'resourceName',
  resource_uuid: 'resourceUuid',
  billing_dimension: 'billingDimension',
} as const satisfies Record<MetricsDimension, string>;
export type MetricsField = (typeof ENTRY_FIELD)[MetricsDimension];
export type EntryField = (typeof ENTRY_FIELD)[GroupByDimension];

/** Shown in place of a field that an entry omits because its usage has several values. */
export const SEVERAL_VALUES = {
  account: 'several accounts',
  workspace: 'several workspaces',
  resourceType: 'several types',
  resourceName: 'several names',
  resourceUuid: 'several instances',
  billingDimension: 'several dimensions',
} as const satisfies Record<MetricsField, string>;

/** Maps a groupBy dimension to the other dimensions that an entry shows if all its usage has the same value in them. */
export const ENRICHED_BY = {
  account: [],
  workspace: [],
  resource_type: [],
  resource_name: ['workspace', 'resource_type'],
  resource_uuid: ['workspace', 'resource_type', 'resource_name'],
  billing_dimension: ['resource_type'],
} as const satisfies Record<MetricsDimension, readonly GroupByDimension[]>;

export function canonicalGroupBy<Dimension extends MetricsDimension>(dimensions: Iterable<Dimension>): Dimension[] {
  const requested = new Set<MetricsDimension>(dimensions);
  return METRICS_DIMENSIONS.filter((dimension): dimension is Dimension => requested.has(dimension));
}

/** Returns the dimensions that entries show although the query does not group by them, in canonical order. */
export function enrichedDimensions(groupBy: readonly MetricsDimension[]): GroupByDimension[] {
  const enriched = new Set<GroupByDimension>(groupBy.flatMap((dimension) => ENRICHED_BY[dimension]));
  return GROUP_BY_DIMENSIONS.filter((dimension) => enriched.has(dimension) && !groupBy.includes(dimension));
}

export function groupKey(
  group: { readonly [Field in MetricsField]?: string | undefined },
  groupBy: readonly MetricsDimension[],
): string {
  return JSON.stringify(groupBy.map((dimension) => group[ENTRY_FIELD[dimension]] ?? null));
}

/** Returns whether responses show usage. Only if grouped by billing dimension does every group have a single unit. */
export function showsUsage(groupBy: readonly MetricsDimension[]): boolean {
  return groupBy.includes('billing_dimension');
}
