import type { GroupByDimension } from '@meterline/catalog';

/** The two sets of parallel arrays in a cell, and the dimensions that tell the entries of each apart. */
export const CELL_ARRAYS = {
  summary: ['workspace', 'resource_type', 'billing_dimension'],
  detail: ['workspace', 'resource_type', 'resource_name', 'resource_uuid', 'billing_dimension'],
} as const satisfies Record<string, readonly GroupByDimension[]>;
export type CellArrays = keyof typeof CELL_ARRAYS;

/** The smaller set that knows all these dimensions. */
export function arraysFor(dimensions: readonly GroupByDimension[]): CellArrays {
  const summarised: readonly GroupByDimension[] = CELL_ARRAYS.summary;
  return dimensions.every((dimension) => summarised.includes(dimension)) ? 'summary' : 'detail';
}
