/** How people call what the API calls by code. The code itself stays in the CSV and in the URL. */
import type { BillingDimension, EntryField, GroupByDimension, ResourceType, Unit } from '@meterline/catalog';

export const DIMENSION_LABEL = {
  workspace: 'Workspace',
  resource_type: 'Resource type',
  resource_name: 'Resource',
  resource_uuid: 'Instance',
  billing_dimension: 'Billing dimension',
} as const satisfies Record<GroupByDimension, string>;

export const RESOURCE_TYPE_LABEL = {
  sandbox: 'Sandbox',
  agent: 'Agent',
  job: 'Job',
  mcp_server: 'MCP server',
  volume: 'Volume',
  custom_domain: 'Custom domain',
} as const satisfies Record<ResourceType, string>;

export const BILLING_DIMENSION_LABEL = {
  sandbox_compute_runtime_gbs: 'Sandbox compute',
  sandbox_image_storage_gbs: 'Sandbox image storage',
  sandbox_snapshot_storage_gbs: 'Sandbox snapshots',
  agent_compute_runtime_gbs: 'Agent compute',
  agent_image_storage_gbs: 'Agent image storage',
  agent_async_requests_count: 'Agent async requests',
  job_compute_runtime_gbs: 'Job compute',
  job_image_storage_gbs: 'Job image storage',
  mcp_server_compute_runtime_gbs: 'MCP server compute',
  mcp_server_image_storage_gbs: 'MCP server image storage',
  volume_storage_gbs: 'Volume storage',
  custom_domain_active_time_hours: 'Custom domain active time',
} as const satisfies Record<BillingDimension, string>;

export const UNIT_LABEL = { gbs: 'GB-seconds', count: 'events', hours: 'hours' } as const satisfies Record<
  Unit,
  string
>;

/** Of resources that have no instance id. */
export const NO_UUID = 'no instance id';

const LABELS_OF_FIELD: Partial<Record<EntryField, Readonly<Record<string, string>>>> = {
  resourceType: RESOURCE_TYPE_LABEL,
  billingDimension: BILLING_DIMENSION_LABEL,
};

export function valueLabel(field: EntryField, value: string): string {
  if (value === '') return NO_UUID;
  return LABELS_OF_FIELD[field]?.[value] ?? value;
}
