import { RESOURCE_TYPES, type ResourceType, type Window } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { CELL_TABLE } from '../rollups/cells.js';
import { NOTHING_SEALED, type SealedUntil } from '../rollups/watermarks.js';
import { planSegments, type Segment } from './plan.js';
import { bucketsCondition, eventsCondition, selectionParameters } from './statement.js';

const resourceTypeRow = z.object({ resource_type: z.enum(RESOURCE_TYPES) });

/** Any resolution but hours will do: the answer has no buckets, so whole days may answer. */
const COARSEST = 'monthly';

export function resourceTypesStatement(
  accountId: string,
  window: Window,
  sealed: SealedUntil = NOTHING_SEALED,
): Statement {
  const segments = planSegments(window, COARSEST, sealed);
  return {
    name: 'read_resource_types',
    query: `
SELECT DISTINCT resource_type
FROM
(${segments.map(segmentTypes).join('\n  UNION ALL')}
)`,
    query_params: selectionParameters({ accountId, filters: {} }, segments),
  };
}

function segmentTypes(segment: Segment, index: number): string {
  if (segment.source === 'events') {
    return `
  SELECT DISTINCT resource_type
  FROM usage_events FINAL
  WHERE ${eventsCondition(segment, index).join('\n    AND ')}`;
  }
  return `
  SELECT DISTINCT arrayJoin(summary.resource_type) AS resource_type
  FROM ${CELL_TABLE[segment.source]} FINAL
  WHERE ${['account_id = {account_id: String}', ...bucketsCondition('bucket', index)].join('\n    AND ')}`;
}

/** The resource types with at least one event that counts in the window, in the catalog's order. */
export async function readResourceTypes(
  warehouse: Warehouse,
  accountId: string,
  window: Window,
  sealed?: SealedUntil,
): Promise<ResourceType[]> {
  const rows = await warehouse.read(resourceTypesStatement(accountId, window, sealed), resourceTypeRow);
  const found = new Set(rows.map((row) => row.resource_type));
  return RESOURCE_TYPES.filter((type) => found.has(type));
}
