import { expect, it } from '@jest/globals';
import { execute, select } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { CatalogConflictError, registerDimensions, removeDimension } from './added-dimensions.js';
import { insertUsageEvents } from './usage-events.js';

const database = testDatabase();

const GPU = { billingDimension: 'gpu_runtime_seconds', resourceType: 'gpu', unit: 'seconds' };
const TOKENS = { billingDimension: 'model_input_tokens', resourceType: 'model', unit: 'tokens' };

const register = (...catalog: (typeof GPU)[]) => registerDimensions(database.shards, catalog);
const remove = (dimension: string) => removeDimension(database.shards, dimension);
const registered = () =>
  select(database.warehouse, 'SELECT billing_dimension AS name FROM added_dimensions ORDER BY name');

async function used(billingDimension: string, resourceType: string): Promise<void> {
  await insertUsageEvents(database.warehouse, [
    {
      ...{ eventId: '01999f3c-2a00-7c31-9d5e-0b6f1e2d3c4b', accountId: 'acme', workspace: 'main', resourceType },
      ...{ resourceName: 'a', resourceUuid: '', billingDimension, usage: 1n, cost: 1n, timestamp: 0 },
      ...{ revision: 0, voided: true, priceRevision: 0, priceBook: 0 },
    },
  ]);
}

it('a catalog may add dimensions and be registered again, also by eight processes at once', async () => {
  await register();
  await Promise.all(Array.from({ length: 8 }, () => register(GPU)));
  await register(GPU);
  await register(TOKENS, GPU);
  expect(new Set((await registered()).map((row) => JSON.stringify(row))).size).toBe(2);
});

it('a catalog that lacks or redefines a registered dimension is rejected, and registers nothing', async () => {
  await register(GPU, TOKENS);
  const before = await registered();
  const lacking = register({ ...GPU, billingDimension: 'gpu_more_seconds' }, TOKENS);
  await expect(lacking).rejects.toThrow(CatalogConflictError);
  await expect(lacking).rejects.toThrow(
    'it lacks gpu_runtime_seconds with the resource type gpu and the unit seconds; set CATALOG to the same file for all programs',
  );
  await expect(register({ ...GPU, resourceType: 'gpu_runtime' }, TOKENS)).rejects.toThrow(
    'it defines gpu_runtime_seconds with the resource type gpu and the unit seconds differently',
  );
  await expect(register()).rejects.toThrow('it lacks gpu_runtime_seconds');
  expect(await registered()).toEqual(before);
});

it('a dimension can be removed only while it has neither events nor rollup rows', async () => {
  await register(GPU, TOKENS);
  await used(GPU.billingDimension, 'gpu');
  expect(await remove(GPU.billingDimension)).toBe('used');
  await execute(database.warehouse, 'TRUNCATE TABLE usage_events');
  const rollup =
    'INSERT INTO usage_daily (account_id, bucket, version, `summary.workspace`, `summary.resource_type`, `summary.billing_dimension`, ' +
    "`summary.usage`, `summary.cost`, `summary.events`) VALUES ('acme', '2026-01-01', 1, ['main'], ['gpu'], ['gpu_runtime_seconds'], [1], [1], [1])";
  await execute(database.warehouse, rollup);
  expect(await remove(GPU.billingDimension)).toBe('used');
  expect(await remove(TOKENS.billingDimension)).toBe('removed');
  expect(await remove(TOKENS.billingDimension)).toBe('unknown');
  await register(GPU);
});

it('two different catalogs are never accepted at the same moment', async () => {
  await execute(database.warehouse, 'TRUNCATE TABLE usage_daily');
  for (let round = 0; round < 10; round += 1) {
    await execute(database.warehouse, 'TRUNCATE TABLE added_dimensions');
    const outcomes = await Promise.allSettled([register(GPU), register(TOKENS)]);
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeLessThan(2);
  }
});

it('of two definitions that were registered at the same moment, the older one counts', async () => {
  await execute(database.warehouse, 'TRUNCATE TABLE added_dimensions');
  const [older, later] = ['gpu', 'gpu_node'].map((resourceType) => ({
    ...{ billingDimension: 'gpu_node_hours_count', resourceType, unit: 'count' },
  }));
  if (!older || !later) throw new Error('two definitions');
  await register(older);
  await execute(
    database.warehouse,
    `INSERT INTO added_dimensions (billing_dimension, resource_type, unit) VALUES ('gpu_node_hours_count', 'gpu_node', 'count')`,
  );
  await register(older);
  await expect(register(later)).rejects.toThrow('with the resource type gpu and the unit count differently');
});
