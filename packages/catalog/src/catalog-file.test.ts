import { describe, expect, it } from '@jest/globals';
import { FILTER_PARAMETERS } from './api/parameters.js';
import { CatalogError, parseCatalog } from './catalog-file.js';
import {
  addDimensions,
  assumedDimension,
  BUILT_IN_DIMENSION_NAMES,
  BUILT_IN_RESOURCE_TYPES,
  billingDimensions,
  resourceTypes,
  unitOf,
} from './dimensions.js';
import { parseUsageEvent } from './event.js';
import { DEFAULT_PRICE_BOOK_FILE, PriceBook } from './price-book.js';

const GPU = { billingDimension: 'gpu_cluster_runtime_seconds', resourceType: 'gpu_cluster', unit: 'seconds' };
const CALLS = { billingDimension: 'agent_tool_calls_count', resourceType: 'agent', unit: 'count' };
const NOW = Date.UTC(2026, 0, 2);

const event = (changes: object) => ({
  eventId: '01999f3c-2a00-7c31-9d5e-0b6f1e2d3c4b',
  accountId: 'acme',
  workspace: 'main',
  resourceType: GPU.resourceType,
  resourceName: 'a100',
  billingDimension: GPU.billingDimension,
  usage: '1.5',
  timestamp: '2026-01-01T00:00:00Z',
  ...changes,
});

const many = Array.from({ length: 89 }, (_, n) => ({ ...GPU, billingDimension: `gpu_cluster_part${n}_seconds` }));
const NAME = 'must be lowercase words joined by underscores, such as mcp_server, with at most 64 characters';

it.each<[string, unknown, string]>([
  ['no dimensions', {}, 'dimensions must be an array'],
  ['an unknown member', { dimensions: [], version: 1 }, 'version'],
  ['an unknown member of a dimension', { dimensions: [{ ...GPU, price: '1' }] }, 'price'],
  ['no name', { dimensions: [{ ...GPU, billingDimension: undefined }] }, `dimensions.0.billingDimension ${NAME}`],
  ['capitals', { dimensions: [{ ...GPU, resourceType: 'GPU' }] }, `dimensions.0.resourceType ${NAME}`],
  [
    'a member of every object',
    { dimensions: [{ ...GPU, resourceType: 'constructor' }] },
    `dimensions.0.resourceType ${NAME}`,
  ],
  ['a long type', { dimensions: [{ ...GPU, resourceType: 'x'.repeat(65) }] }, `dimensions.0.resourceType ${NAME}`],
  [
    'a unit of two words',
    { dimensions: [{ ...GPU, unit: 'gpu_seconds' }] },
    'dimensions.0.unit must be a lowercase word',
  ],
  [
    'another unit than the name',
    { dimensions: [{ ...GPU, unit: 'hours' }] },
    'dimensions.0.billingDimension must start with the resource type and end with the unit, such as gpu_cluster_<what>_hours',
  ],
  [
    'another resource type than the name',
    { dimensions: [{ ...GPU, resourceType: 'agent' }] },
    'must start with the resource type and end with the unit, such as agent_<what>_seconds',
  ],
  [
    'a name of only the resource type and the unit',
    { dimensions: [{ ...GPU, billingDimension: 'gpu_cluster_seconds' }] },
    'such as gpu_cluster_<what>_seconds',
  ],
  [
    'a built-in dimension',
    { dimensions: [{ billingDimension: 'volume_storage_gbs', resourceType: 'volume', unit: 'gbs' }] },
    'volume_storage_gbs is built in, and cannot be redefined',
  ],
  [
    'a dimension twice',
    { dimensions: [GPU, CALLS, GPU] },
    'dimensions.2.billingDimension gpu_cluster_runtime_seconds is defined twice; keep one',
  ],
  ['89 dimensions', { dimensions: many }, 'dimensions must have at most 88 dimensions'],
])('a catalog with %s is rejected with the position', (_, catalog, problem) => {
  expect(() => parseCatalog(catalog)).toThrow(CatalogError);
  expect(() => parseCatalog(catalog)).toThrow(problem);
});

it('a catalog may have 88 dimensions, or none', () => {
  expect(parseCatalog({ dimensions: many.slice(1) })).toHaveLength(88);
  expect(parseCatalog({ dimensions: [] })).toEqual([]);
});

it('every built-in name ends with its unit, like an added one', () => {
  const units = new Set(BUILT_IN_DIMENSION_NAMES.map(unitOf));
  expect([...units]).toEqual(['gbs', 'count', 'hours']);
});

it('a producer leaves a dimension that it does not know to the collector, but checks the rest of the event', () => {
  const parse = (changes: object) => parseUsageEvent(event(changes), NOW, assumedDimension);
  expect(parse({})).toMatchObject({ ok: true, value: { usage: 1_500_000_000n, resourceType: 'gpu_cluster' } });
  expect(parse({ usage: -1 })).toMatchObject({ ok: false, message: expect.stringMatching(/^usage must be [^;]*$/) });
  const counted = { resourceType: 'agent', billingDimension: 'agent_tool_calls_count' };
  expect(parse(counted)).toMatchObject({ ok: false, reason: 'invalid_usage' });
  expect(parse({ ...counted, usage: 2 })).toMatchObject({ ok: true });
  for (const billingDimension of [
    'cpu',
    'gpu_cluster',
    'gpu_cluster_seconds',
    'gpu-cluster-runtime-seconds',
    'constructor',
  ]) {
    expect(parse({ billingDimension })).toMatchObject({ ok: false, reason: 'invalid_resource_type' });
  }
  const other = { resourceType: 'agent', billingDimension: 'volume_storage_gbs' };
  expect(parse(other)).toMatchObject({ ok: false, reason: 'dimension_mismatch' });
});

describe('after a catalog has added dimensions', () => {
  const prices = [GPU, CALLS].map(({ billingDimension }) => ({
    ...{ billingDimension, effectiveFrom: '1970-01-01T00:00:00Z', amount: '2', per: '1' },
  }));
  const added = { ...DEFAULT_PRICE_BOOK_FILE, prices: [...DEFAULT_PRICE_BOOK_FILE.prices, ...prices] };

  it('events, filters and price books know them, after the built-in ones', () => {
    expect(parseUsageEvent(event({}), NOW)).toMatchObject({ ok: false, reason: 'invalid_resource_type' });
    expect(() => new PriceBook(added)).toThrow('prices.12.billingDimension must be one of sandbox_compute');
    addDimensions(parseCatalog({ dimensions: [GPU, CALLS] }));

    expect(billingDimensions()).toEqual([...BUILT_IN_DIMENSION_NAMES, GPU.billingDimension, CALLS.billingDimension]);
    expect(resourceTypes()).toEqual([...BUILT_IN_RESOURCE_TYPES, 'gpu_cluster']);
    expect(parseUsageEvent(event({}), NOW)).toMatchObject({ ok: true });
    expect(parseUsageEvent(event({ resourceType: 'agent' }), NOW)).toMatchObject({
      ...{ ok: false, reason: 'dimension_mismatch' },
      message: 'billingDimension gpu_cluster_runtime_seconds belongs to resourceType gpu_cluster, not to agent',
    });
    expect(parseUsageEvent(event({ billingDimension: 'x' }), NOW)).toMatchObject({
      ...{
        reason: 'invalid_billing_dimension',
        message: expect.stringMatching(/gpu_cluster_runtime_seconds, agent_tool_calls_count \(got "x"\)$/),
      },
    });
    expect(FILTER_PARAMETERS.resourceType.safeParse('gpu_cluster').success).toBe(true);
    expect(FILTER_PARAMETERS.excludeBillingDimension.safeParse('vm').error?.issues[0]?.message).toMatch(
      /_calls_count$/,
    );
    expect(new PriceBook(added).billingDimensions('acme', NOW)[12]).toMatchObject({ ...GPU, price: { amount: '2' } });
  });

  it('a price book must have their prices', () => {
    expect(() => new PriceBook(DEFAULT_PRICE_BOOK_FILE)).toThrow(
      'no price for gpu_cluster_runtime_seconds, agent_tool_calls_count',
    );
  });
});
