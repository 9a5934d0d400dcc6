import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { z } from 'zod';
import { bearer, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme', 'member');
  const volume = { resourceType: 'volume', billingDimension: 'volume_storage_gbs' } as const;
  const job = { resourceType: 'job', billingDimension: 'job_compute_runtime_gbs' } as const;
  await api.seed([
    event({ ...volume, at: '2025-10-01T10:00:00Z' }),
    event({ at: '2025-10-01T10:00:00.500Z', cost: '0', usage: '0' }),
    event({ ...job, at: '2025-10-01T11:00:00Z' }),
    event({ ...job, accountId: 'globex', at: '2025-10-01T10:00:00Z' }),
  ]);
  const withdrawn = event({
    resourceType: 'agent',
    billingDimension: 'agent_compute_runtime_gbs',
    at: '2025-10-01T10:00:00Z',
  });
  await api.seed([withdrawn, { ...withdrawn, revision: 1, voided: true }]);
});
afterAll(() => api.stop());

const ask = (name: string, query = '') => api.request(`/v0/accounts/acme/metrics/enums/${name}${query}`, bearer(key));
const types = async (startTime: string, endTime: string) =>
  (await ask('resource-types', `?${new URLSearchParams({ startTime, endTime })}`)).body;

it('the enum group-by lists the five dimensions', async () => {
  expect((await ask('group-by')).body).toEqual({
    values: ['workspace', 'resource_type', 'resource_name', 'resource_uuid', 'billing_dimension'],
  });
});

it('the enum resource-types lists the types with an event in the window, one that costs nothing included, a voided one not', async () => {
  expect(await types('2025-10-01T00:00:00Z', '2025-10-02T00:00:00Z')).toEqual({
    values: ['sandbox', 'job', 'volume'],
  });
});

it.each([
  ['2025-10-01T10:00:00Z', '2025-10-01T10:00:00.500Z', ['volume']],
  ['2025-10-01T10:00:00.001Z', '2025-10-01T10:00:00.501Z', ['sandbox']],
  ['2025-10-01T10:30:00Z', '2025-10-01T11:00:00.001Z', ['job']],
  ['2020-01-01T00:00:00Z', '2025-10-01T10:00:00Z', []],
])('the enum resource-types has from %s to %s the values %j', async (startTime, endTime, values) => {
  expect(await types(startTime, endTime)).toEqual({ values });
});

it('the enum resource-types has no longest window', async () => {
  expect(await types('0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z')).toEqual({
    values: ['sandbox', 'job', 'volume'],
  });
});

it.each([
  ['resourceType=volume', ['volume']],
  ['resourceType=volume&resourceType=job&resourceName=box', ['job', 'volume']],
  ['billingDimension=job_compute_runtime_gbs', ['job']],
  ['resourceName=nobody', []],
  ['withoutResourceUuid=true', []],
  ['resourceUuid=u-1', ['sandbox', 'job', 'volume']],
  ['excludeResourceType=job', ['sandbox', 'volume']],
  ['excludeResourceUuid=u-1', []],
  ['excludeWithoutResourceUuid=true&excludeBillingDimension=job_compute_runtime_gbs', ['sandbox', 'volume']],
])('the enum resource-types takes the filters of the metrics: %s', async (filters, values) => {
  const query = `?startTime=2025-10-01T00:00:00Z&endTime=2025-10-02T00:00:00Z&${filters}`;
  expect((await ask('resource-types', query)).body).toEqual({ values });
});

it("the enum billing-dimensions lists what the specification's table does", async () => {
  const { values } = z.object({ values: z.array(z.unknown()) }).parse((await ask('billing-dimensions')).body);
  expect(values).toHaveLength(12);
  expect(values[0]).toEqual({
    billingDimension: 'sandbox_compute_runtime_gbs',
    resourceType: 'sandbox',
    unit: 'gbs',
  });
  expect(values).toContainEqual({
    billingDimension: 'agent_async_requests_count',
    resourceType: 'agent',
    unit: 'count',
  });
  expect(values[11]).toEqual({
    billingDimension: 'custom_domain_active_time_hours',
    resourceType: 'custom_domain',
    unit: 'hours',
  });
});
