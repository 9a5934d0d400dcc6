/** Stores in ClickHouse which billing dimensions were added to the built-in ones, so that all processes agree on them. */
import type { NamedDimension } from '@meterline/catalog';
import { z } from 'zod';
import { insertRows, onEachShard, type Statement, type Warehouse } from '../clickhouse/connection.js';
import type { Shards } from '../shards.js';

/** If two processes registered different definitions of a dimension concurrently, the older definition counts. */
const REGISTERED_DIMENSIONS: Statement = {
  name: 'read_added_dimensions',
  query: `
SELECT billing_dimension AS billingDimension, oldest.1 AS resourceType, oldest.2 AS unit
FROM (
  SELECT billing_dimension, argMin((resource_type, unit), (registered_at, resource_type, unit)) AS oldest
  FROM added_dimensions
  GROUP BY billing_dimension
)
ORDER BY billingDimension`,
  query_params: {},
};

const registeredRow = z.object({ billingDimension: z.string(), resourceType: z.string(), unit: z.string() });

/** Thrown if the catalog of this process differs from the registered dimensions. */
export class CatalogConflictError extends Error {
  override readonly name = 'CatalogConflictError';
}

/**
 * Returns the dimensions that are not registered yet. Writes nothing.
 * @throws CatalogConflictError if a registered dimension is missing from the catalog, or is defined differently there
 */
export async function checkDimensions(
  warehouse: Warehouse,
  catalog: readonly NamedDimension[],
): Promise<NamedDimension[]> {
  const registered = await warehouse.read(REGISTERED_DIMENSIONS, registeredRow);
  const own = new Map(catalog.map((dimension) => [dimension.billingDimension, dimension]));
  const problems = registered.flatMap(({ billingDimension, resourceType, unit }) => {
    const mine = own.get(billingDimension);
    if (mine?.resourceType === resourceType && mine.unit === unit) return [];
    const definition = `${billingDimension} with the resource type ${resourceType} and the unit ${unit}`;
    return [mine ? `defines ${definition} differently` : `lacks ${definition}`];
  });
  if (problems.length > 0) {
    throw new CatalogConflictError(
      `the catalog of this process differs from the registered one: it ${problems.join(', and ')}; ` +
        'set CATALOG to the same file for all programs, or remove an unused dimension with "meterline catalog remove"',
    );
  }
  const names = new Set(registered.map(({ billingDimension }) => billingDimension));
  return catalog.filter(({ billingDimension }) => !names.has(billingDimension));
}

/**
 * Registers the dimensions on every shard, and then checks them once more. Each process thus writes before its last check. So of two
 * processes that register different catalogs concurrently, the later one fails.
 * @throws CatalogConflictError
 */
export async function registerDimensions({ all }: Shards, catalog: readonly NamedDimension[]): Promise<void> {
  await onEachShard(all, async (shard) => {
    const missing = await checkDimensions(shard, catalog);
    if (missing.length === 0) return;
    const rows = missing.map(({ billingDimension, resourceType, unit }) => {
      return { billing_dimension: billingDimension, resource_type: resourceType, unit };
    });
    await insertRows(shard, 'added_dimensions', rows);
  });
  await onEachShard(all, (shard) => checkDimensions(shard, catalog));
}

/** Searches the daily rollup rows as well as the events, because the events of closed months may have been dropped. */
const HAS_USAGE = `
SELECT
  (SELECT count() FROM (SELECT 1 FROM usage_events WHERE billing_dimension = {dimension: String} LIMIT 1))
  + (SELECT count() FROM (SELECT 1 FROM usage_daily WHERE has(summary.billing_dimension, {dimension: String}) LIMIT 1)) AS found`;

const REMOVE_DIMENSION = `
ALTER TABLE added_dimensions
DELETE WHERE billing_dimension = {dimension: String}`;

/** @returns `unknown` if the dimension is not registered, or `used` if it has events, even voided ones; nothing is removed then */
export async function removeDimension({ all }: Shards, dimension: string): Promise<'removed' | 'unknown' | 'used'> {
  const query_params = { dimension };
  const registered = await onEachShard(all, (shard) => shard.read(REGISTERED_DIMENSIONS, registeredRow));
  if (!registered.flat().some(({ billingDimension }) => billingDimension === dimension)) return 'unknown';
  const usage = { name: 'read_dimension_usage', query: HAS_USAGE, query_params };
  const found = await onEachShard(all, (shard) => shard.read(usage, z.object({ found: z.coerce.number() })));
  if (found.flat().some((row) => row.found > 0)) return 'used';
  await onEachShard(all, (shard) => shard.run({ name: 'remove_dimension', query: REMOVE_DIMENSION, query_params }));
  return 'removed';
}
