import { RESOURCE_TYPES, type ResourceType, type Window } from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../client.js';
import { readRows, type Statement } from '../statement.js';
import { selectionCondition, selectionParameters } from './selection.js';

const resourceTypeRow = z.object({ resource_type: z.enum(RESOURCE_TYPES) });

export function resourceTypesStatement(accountId: string, window: Window): Statement {
  const selection = { accountId, window, filters: {} };
  return {
    name: 'read_resource_types',
    query: `
SELECT DISTINCT resource_type
FROM usage_events FINAL
WHERE ${selectionCondition(selection)}`,
    query_params: selectionParameters(selection),
  };
}

/** The resource types with at least one event that counts in the window, in the catalog's order. */
export async function readResourceTypes(
  warehouse: Warehouse,
  accountId: string,
  window: Window,
): Promise<ResourceType[]> {
  const rows = await readRows(warehouse, resourceTypesStatement(accountId, window), resourceTypeRow);
  const found = new Set(rows.map((row) => row.resource_type));
  return RESOURCE_TYPES.filter((type) => found.has(type));
}
