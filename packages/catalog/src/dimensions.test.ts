import { describe, expect, it } from '@jest/globals';
import { BILLING_DIMENSIONS, DIMENSIONS, RESOURCE_TYPES } from './dimensions.js';

/** The specification's table, word for word. */
const SPECIFICATION = [
  ['sandbox_compute_runtime_gbs', 'sandbox', 'gbs'],
  ['sandbox_image_storage_gbs', 'sandbox', 'gbs'],
  ['sandbox_snapshot_storage_gbs', 'sandbox', 'gbs'],
  ['agent_compute_runtime_gbs', 'agent', 'gbs'],
  ['agent_image_storage_gbs', 'agent', 'gbs'],
  ['agent_async_requests_count', 'agent', 'count'],
  ['job_compute_runtime_gbs', 'job', 'gbs'],
  ['job_image_storage_gbs', 'job', 'gbs'],
  ['mcp_server_compute_runtime_gbs', 'mcp_server', 'gbs'],
  ['mcp_server_image_storage_gbs', 'mcp_server', 'gbs'],
  ['volume_storage_gbs', 'volume', 'gbs'],
  ['custom_domain_active_time_hours', 'custom_domain', 'hours'],
];

describe('the catalog of billing dimensions', () => {
  it('is the table of the specification, in its order', () => {
    const catalog = BILLING_DIMENSIONS.map((name) => [name, DIMENSIONS[name].resourceType, DIMENSIONS[name].unit]);
    expect(catalog).toEqual(SPECIFICATION);
  });

  it('has the resource types of the specification, in its order', () => {
    expect(RESOURCE_TYPES).toEqual(['sandbox', 'agent', 'job', 'mcp_server', 'volume', 'custom_domain']);
  });
});
