import { type GroupByDimension, RESOURCE_TYPES, type ResourceType } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { CELL_TABLE } from '../rollups/cells.js';
import { NO_CELLS, type ReadableCells } from '../rollups/watermarks.js';
import {
  bucketsCondition,
  eventsCondition,
  type Filter,
  filtersOf,
  planSegments,
  type Segment,
  type Selection,
  selectionParameters,
  withEvents,
} from './plan.js';
import { smallestArrays } from './statement.js';

const resourceTypeRow = z.object({ resource_type: z.enum(RESOURCE_TYPES) });

/** Any resolution but hours will do: the answer has no buckets, so whole days may answer. */
const COARSEST = 'monthly';

export function resourceTypesStatement(selection: Selection, cells: ReadableCells = NO_CELLS): Statement {
  const segments = planSegments(withEvents(selection.window), COARSEST, cells);
  const filters = filtersOf(selection);
  return {
    name: 'read_resource_types',
    query: `
SELECT DISTINCT resource_type
FROM
(${segments.map((segment, index) => segmentTypes(segment, index, filters)).join('\n  UNION ALL')}
)`,
    query_params: selectionParameters(selection, segments),
  };
}

function segmentTypes(segment: Segment, index: number, filters: readonly Filter[]): string {
  const filtered = filters.map(({ condition }) => condition);
  if (segment.source === 'events') {
    return `
  SELECT DISTINCT resource_type
  FROM usage_events FINAL
  WHERE ${[...eventsCondition(segment, index), ...filtered].join('\n    AND ')}`;
  }
  const read = [...new Set<GroupByDimension>(['resource_type', ...filters.map(({ dimension }) => dimension)])];
  const arrays = smallestArrays(read);
  const condition = ['account_id = {account_id: String}', ...bucketsCondition('bucket', segment, index), ...filtered];
  return `
  SELECT DISTINCT resource_type
  FROM ${CELL_TABLE[segment.source]} FINAL
  ARRAY JOIN
    ${read.map((column) => `${arrays}.${column} AS ${column}`).join(',\n    ')}
  WHERE ${condition.join('\n    AND ')}`;
}

/** The resource types with at least one event that counts among those selected, in the catalog's order. */
export async function readResourceTypes(
  warehouse: Warehouse,
  selection: Selection,
  cells?: ReadableCells,
): Promise<ResourceType[]> {
  const rows = await warehouse.read(resourceTypesStatement(selection, cells), resourceTypeRow);
  const found = new Set(rows.map((row) => row.resource_type));
  return RESOURCE_TYPES.filter((type) => found.has(type));
}
