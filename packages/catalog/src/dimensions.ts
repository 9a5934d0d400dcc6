/**
 * Defines resource types, billing dimensions with their units, and the dimensions that a query may group by. Source: the API specification,
 * section "Billing API": the table of billing dimensions (whose order is kept), the parameter `groupBy`, and the table AccountMetricsDataEntry.
 * A platform may add billing dimensions of its own (`catalog-file.ts`).
 */

/** Lets an editor complete the built-in names, although any name is allowed. */
type OtherName = string & Record<never, never>;

export const BUILT_IN_RESOURCE_TYPES = ['sandbox', 'agent', 'job', 'mcp_server', 'volume', 'custom_domain'] as const;
export type BuiltInResourceType = (typeof BUILT_IN_RESOURCE_TYPES)[number];
export type ResourceType = BuiltInResourceType | OtherName;

/** The unit `gbs` means GB-seconds, `count` means discrete events (whole numbers), and `hours` means active hours. */
export type BuiltInUnit = 'gbs' | 'count' | 'hours';
export type Unit = BuiltInUnit | OtherName;

export interface Dimension {
  readonly resourceType: ResourceType;
  readonly unit: Unit;
}

export const BUILT_IN_DIMENSIONS = {
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
} as const satisfies Record<string, { readonly resourceType: BuiltInResourceType; readonly unit: BuiltInUnit }>;

export type BuiltInDimension = keyof typeof BUILT_IN_DIMENSIONS;
export const BUILT_IN_DIMENSION_NAMES = Object.keys(BUILT_IN_DIMENSIONS) as readonly BuiltInDimension[];
export type BillingDimension = BuiltInDimension | OtherName;

/** The dimensions that this process knows, in order: the built-in dimensions, then the added ones. */
const known = /* @__PURE__ */ new Map<string, Dimension>(/* @__PURE__ */ Object.entries(BUILT_IN_DIMENSIONS));

export interface NamedDimension extends Dimension {
  readonly billingDimension: BillingDimension;
}

/**
 * Makes dimensions known to this process. A service calls this once, with the dimensions of its catalog file, before it parses events or
 * requests. The page and the command line add the dimensions that the API returns. Known dimensions stay unchanged.
 */
export function addDimensions(dimensions: readonly NamedDimension[]): void {
  for (const { billingDimension, resourceType, unit } of dimensions) {
    if (!known.has(billingDimension)) known.set(billingDimension, { resourceType, unit });
  }
}

export function dimensionOf(name: string): Dimension | undefined {
  return known.get(name);
}

export function billingDimensions(): BillingDimension[] {
  return [...known.keys()];
}

export function namedDimensions(): NamedDimension[] {
  return Array.from(known, ([billingDimension, dimension]) => ({ billingDimension, ...dimension }));
}

export function addedDimensions(): NamedDimension[] {
  return namedDimensions().slice(BUILT_IN_DIMENSION_NAMES.length);
}

export function resourceTypes(): ResourceType[] {
  return [...new Set([...BUILT_IN_RESOURCE_TYPES, ...Array.from(known.values(), ({ resourceType }) => resourceType)])];
}

export function isResourceType(value: string): boolean {
  return resourceTypes().includes(value);
}

export function isBillingDimension(value: string): boolean {
  return known.has(value);
}

/** Names consist of lowercase words. */
const NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
const UNIT = /^[a-z]+$/;
/** The maximum length of names, because they appear in tables and in URLs. */
export const MAX_CODE_LENGTH = 64;

/** Rejects names such as `constructor`, because every object has a member with this name. */
export function isResourceTypeName(text: string): boolean {
  return NAME.test(text) && text.length <= MAX_CODE_LENGTH && !(text in {});
}

export function isUnitName(text: string): boolean {
  return UNIT.test(text) && text.length <= MAX_CODE_LENGTH && !(text in {});
}

/**
 * Returns whether the name has the form `<resource type>_<what>_<unit>`, which all names of dimensions have. Code that does not know a dimension
 * that the platform has added can thus take the unit from the name.
 */
export function isNameOf({ resourceType, unit }: Dimension, name: string): boolean {
  const what = name.slice(resourceType.length + 1, -unit.length - 1);
  return isResourceTypeName(name) && what !== '' && name === `${resourceType}_${what}_${unit}`;
}

export function isDimensionName(text: string): boolean {
  return isResourceTypeName(text) && text.split('_').length > 2;
}

/** Returns the unit that the name ends with. */
export function unitOf(name: BillingDimension): Unit {
  return name.slice(name.lastIndexOf('_') + 1);
}

/** Returns the dimension with the name. Accepts any name of the right form, because a producer does not know what the platform has added. */
export function assumedDimension(name: string, resourceType: unknown): Dimension | undefined {
  if (known.has(name) || typeof resourceType !== 'string') return known.get(name);
  const dimension = { resourceType, unit: unitOf(name) };
  return isUnitName(dimension.unit) && isNameOf(dimension, name) ? dimension : undefined;
}

/** In the order in which Meterline always lists them (canonical order). */
export const GROUP_BY_DIMENSIONS = [
  'workspace',
  'resource_type',
  'resource_name',
  'resource_uuid',
  'billing_dimension',
] as const;
export type GroupByDimension = (typeof GROUP_BY_DIMENSIONS)[number];

/** The dimensions of queries about several accounts, in canonical order. Meterline adds such queries to the platform's API. */
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

/** Maps a groupBy dimension to others that an entry also shows if they are the same for all its usage, such as a resource's workspace. */
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

/** Returns the dimensions that entries of a response show although the query does not group by them, in canonical order. */
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

/** Returns whether responses show usage. This requires groups by billing dimension, because other groups may mix several units. */
export function showsUsage(groupBy: readonly MetricsDimension[]): boolean {
  return groupBy.includes('billing_dimension');
}
