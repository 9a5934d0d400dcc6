/**
 * What can be billed: resource types, billing dimensions and their units.
 * Source: the API specification, section "Billing API", table of billing dimensions; the order is the table's.
 */

export const RESOURCE_TYPES = ['sandbox', 'agent', 'job', 'mcp_server', 'volume', 'custom_domain'] as const;
export type ResourceType = (typeof RESOURCE_TYPES)[number];

/** `gbs` = GB-seconds, `count` = discrete events (whole numbers), `hours` = active hours. */
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

/** The billing dimensions in the specification's order. */
export const BILLING_DIMENSIONS = Object.keys(DIMENSIONS) as readonly BillingDimension[];

export function isResourceType(value: string): value is ResourceType {
  return (RESOURCE_TYPES as readonly string[]).includes(value);
}

export function isBillingDimension(value: string): value is BillingDimension {
  return Object.hasOwn(DIMENSIONS, value);
}
