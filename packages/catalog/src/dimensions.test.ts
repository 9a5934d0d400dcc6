import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  BUILT_IN_DIMENSION_NAMES,
  BUILT_IN_DIMENSIONS,
  BUILT_IN_RESOURCE_TYPES,
  canonicalGroupBy,
  ENTRY_FIELD,
  enrichedDimensions,
  METRICS_DIMENSIONS,
  showsUsage,
} from './dimensions.js';

it('the billing dimensions and the resource types are those of the specification, in its order', () => {
  const catalog = BUILT_IN_DIMENSION_NAMES.map((name) =>
    [name, BUILT_IN_DIMENSIONS[name].resourceType, BUILT_IN_DIMENSIONS[name].unit].join(),
  );
  expect(catalog).toEqual([
    'sandbox_compute_runtime_gbs,sandbox,gbs',
    'sandbox_image_storage_gbs,sandbox,gbs',
    'sandbox_snapshot_storage_gbs,sandbox,gbs',
    'agent_compute_runtime_gbs,agent,gbs',
    'agent_image_storage_gbs,agent,gbs',
    'agent_async_requests_count,agent,count',
    'job_compute_runtime_gbs,job,gbs',
    'job_image_storage_gbs,job,gbs',
    'mcp_server_compute_runtime_gbs,mcp_server,gbs',
    'mcp_server_image_storage_gbs,mcp_server,gbs',
    'volume_storage_gbs,volume,gbs',
    'custom_domain_active_time_hours,custom_domain,hours',
  ]);
  expect(BUILT_IN_RESOURCE_TYPES).toEqual(['sandbox', 'agent', 'job', 'mcp_server', 'volume', 'custom_domain']);
});

/** What each of the 25 sets fills in a response is in test/contract/metrics. */
it('groupBy names the members of an entry as the specification does, in its order', () => {
  expect(Object.entries(ENTRY_FIELD).map((entry) => entry.join())).toEqual([
    'account,account',
    'workspace,workspace',
    'resource_type,resourceType',
    'resource_name,resourceName',
    'resource_uuid,resourceUuid',
    'billing_dimension,billingDimension',
  ]);
  expect(METRICS_DIMENSIONS).toEqual(Object.keys(ENTRY_FIELD));
});

it('groupBy has one canonical order', () => {
  fc.assert(
    fc.property(fc.shuffledSubarray([...METRICS_DIMENSIONS]), (shuffled) => {
      expect(canonicalGroupBy(shuffled)).toEqual(METRICS_DIMENSIONS.filter((each) => shuffled.includes(each)));
    }),
  );
});

it('groupBy fills what is coarser than a name, an instance or a dimension, and shows usage of a dimension alone', () => {
  expect(enrichedDimensions(['workspace', 'resource_uuid'])).toEqual(['resource_type', 'resource_name']);
  expect(enrichedDimensions(['resource_type', 'billing_dimension'])).toEqual([]);
  expect([showsUsage(['resource_uuid']), showsUsage(['workspace', 'billing_dimension'])]).toEqual([false, true]);
});
