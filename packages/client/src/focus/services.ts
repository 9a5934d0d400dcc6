/**
 * What FOCUS calls the things that are billed: services, meters and units.
 * Source: FOCUS 1.2, columns ServiceCategory and ServiceSubcategory (allowed values), attribute Unit Format.
 */
import type { BillingDimension, ResourceType, Unit } from '@meterline/catalog';

export interface FocusService {
  readonly resourceType: string;
  readonly serviceName: string;
  readonly category: string;
  readonly subcategory: string;
}

/** One service for each resource type. */
export const FOCUS_SERVICES = {
  sandbox: {
    resourceType: 'Sandbox',
    serviceName: 'Sandboxes',
    category: 'Compute',
    subcategory: 'Containers',
  },
  agent: {
    resourceType: 'Agent',
    serviceName: 'Agents',
    category: 'AI and Machine Learning',
    subcategory: 'AI Platforms',
  },
  job: {
    resourceType: 'Batch Job',
    serviceName: 'Batch Jobs',
    category: 'Compute',
    subcategory: 'Serverless Compute',
  },
  mcp_server: {
    resourceType: 'MCP Server',
    serviceName: 'MCP Servers',
    category: 'Compute',
    subcategory: 'Serverless Compute',
  },
  volume: {
    resourceType: 'Volume',
    serviceName: 'Volumes',
    category: 'Storage',
    subcategory: 'Block Storage',
  },
  custom_domain: {
    resourceType: 'Custom Domain',
    serviceName: 'Custom Domains',
    category: 'Networking',
    subcategory: 'Application Networking',
  },
} as const satisfies Record<ResourceType, FocusService>;

/** What is measured. */
export const FOCUS_METERS = {
  sandbox_compute_runtime_gbs: 'Compute Runtime',
  sandbox_image_storage_gbs: 'Image Storage',
  sandbox_snapshot_storage_gbs: 'Snapshot Storage',
  agent_compute_runtime_gbs: 'Compute Runtime',
  agent_image_storage_gbs: 'Image Storage',
  agent_async_requests_count: 'Async Requests',
  job_compute_runtime_gbs: 'Compute Runtime',
  job_image_storage_gbs: 'Image Storage',
  mcp_server_compute_runtime_gbs: 'Compute Runtime',
  mcp_server_image_storage_gbs: 'Image Storage',
  volume_storage_gbs: 'Storage',
  custom_domain_active_time_hours: 'Active Time',
} as const satisfies Record<BillingDimension, string>;

/** In the Unit Format. */
export const FOCUS_UNITS = {
  gbs: 'GB-Seconds',
  count: 'Requests',
  hours: 'Hours',
} as const satisfies Record<Unit, string>;
