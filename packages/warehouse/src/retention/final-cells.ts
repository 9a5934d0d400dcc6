/** Cells that nothing replaces any more, of months whose events are dropped. Why that is safe: bounds.ts. */
import type { EpochMs, Window } from '@meterline/catalog';
import type { Warehouse } from '../clickhouse/connection.js';
import { CELL_TABLE } from '../rollups/cells.js';
import { CELL_COLUMNS, CELL_SETTINGS, FINAL_VERSION, recomputeCells } from '../rollups/recompute.js';
import { readSlices } from '../rollups/sizes.js';

/** About how many groups of hours one statement makes days of. */
const SLICE_ROWS = 250_000;

/**
 * Makes the cells of a day of every account final: its hours as they are, then the day, computed from them.
 * @param day its start. Resolves when the cells are durable; doing it again changes nothing.
 */
export async function makeDayFinal(warehouse: Warehouse, { startTime: from, endTime: to }: Window): Promise<void> {
  await makeHoursFinal(warehouse, from, to);
  for (const slice of await readSlices(warehouse, 'daily', { from, to, sliceRows: SLICE_ROWS })) {
    await recomputeCells(warehouse, 'daily', slice, 'final');
  }
}

/** Copies, because a version cannot be changed in place. A merge drops the cells that were copied. */
async function makeHoursFinal(warehouse: Warehouse, from: EpochMs, to: EpochMs): Promise<void> {
  const table = CELL_TABLE.hourly;
  const copied = CELL_COLUMNS.map((column) =>
    column === 'version' ? `bitOr(${table}.version, ${FINAL_VERSION})` : column,
  );
  await warehouse.run({
    name: 'make_hours_final',
    query: `
INSERT INTO ${table} (${CELL_COLUMNS.join(', ')})
SELECT ${copied.join(', ')}
FROM ${table} FINAL
WHERE bucket >= toDateTime({from: UInt32}, 'UTC') AND bucket < toDateTime({to: UInt32}, 'UTC')
  AND ${table}.version < ${FINAL_VERSION}
${CELL_SETTINGS}`,
    query_params: { from: from / 1000, to: to / 1000 },
  });
}
