/**
 * What can be billed: resource types, billing dimensions and their units.
 * Source: the API specification, section "Billing API", table of billing dimensions; the order is the table's.
 */

export const RESOURCE_TYPES = ['sandbox', 'agent', 'job', 'mcp_server', 'volume', 'custom_domain'] as const;
export type ResourceType = (typeof RESOURCE_TYPES)[number];

/** `gbs` = GB-seconds, `count` = discrete events (whole numbers), `hours` = active hours. */
export const UNITS = ['gbs', 'count', 'hours'] as const;
export type Unit = (typeof UNITS)[number];

export interface DimensionDefinition {
  readonly resourceType: ResourceType;
  readonly unit: Unit;
}

const measured = <R extends ResourceType, U extends Unit>(resourceType: R, unit: U) =>
  ({ resourceType, unit }) as const;
const gbSeconds = <R extends ResourceType>(resourceType: R) => measured(resourceType, 'gbs');

export const DIMENSIONS = {
  sandbox_compute_runtime_gbs: gbSeconds('sandbox'),
  sandbox_image_storage_gbs: gbSeconds('sandbox'),
  sandbox_snapshot_storage_gbs: gbSeconds('sandbox'),
  agent_compute_runtime_gbs: gbSeconds('agent'),
  agent_image_storage_gbs: gbSeconds('agent'),
  agent_async_requests_count: measured('agent', 'count'),
  job_compute_runtime_gbs: gbSeconds('job'),
  job_image_storage_gbs: gbSeconds('job'),
  mcp_server_compute_runtime_gbs: gbSeconds('mcp_server'),
  mcp_server_image_storage_gbs: gbSeconds('mcp_server'),
  volume_storage_gbs: gbSeconds('volume'),
  custom_domain_active_time_hours: measured('custom_domain', 'hours'),
} as const satisfies Record<string, DimensionDefinition>;

export type BillingDimension = keyof typeof DIMENSIONS;

/** The billing dimensions in the specification's order. */
export const BILLING_DIMENSIONS = Object.keys(DIMENSIONS) as readonly BillingDimension[];

export function isResourceType(value: string): value is ResourceType {
  return (RESOURCE_TYPES as readonly string[]).includes(value);
}

export function isBillingDimension(value: string): value is BillingDimension {
  return Object.hasOwn(DIMENSIONS, value);
}
