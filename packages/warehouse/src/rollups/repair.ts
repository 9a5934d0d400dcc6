/** Recomputes the cells of marked hours, and removes the marks. Why this is exact: marks.ts. Source: DESIGN section 5. */
import type { EpochMs } from '@meterline/catalog';
import type { Warehouse } from '../clickhouse/connection.js';
import { isStatementLimit } from '../clickhouse/errors.js';
import { type AccountHours, bucketOf, type Cell, type Grain } from './cells.js';
import { readDueMarks, removeMarks } from './marks.js';
import { LARGE_CELL_ROWS, recomputeCells } from './recompute.js';
import { readCellRows } from './sizes.js';
import { readWatermarks } from './watermarks.js';

/**
 * The names of the cells of one statement are one field of a form, and ClickHouse refuses a field of more than 128 KB
 * (http_max_field_value_size). A byte of an account id takes at most two there: a quote gets a backslash.
 */
const MAX_NAME_BYTES = 100_000;
const BYTES_PER_ACCOUNT_BYTE = 2;
/** Of a cell without its account id: the time, quotes, brackets and commas. */
const BYTES_PER_CELL = 30;

export interface RepairLimits {
  /** About how many marked hours one step takes. It has at least one mark, however many hours that has. */
  readonly hours: number;
  /** About how many rows one statement reads at most. It takes a few hundred bytes of the server's memory for each. */
  readonly statementRows: number;
}

export const REPAIR_LIMITS: RepairLimits = { hours: 10_000, statementRows: 500_000 };

/** How many marks were removed, and how many cells of each grain were recomputed. */
export interface Repaired extends Readonly<Record<Grain | 'marks', number>> {
  /** What the server's limits do not let be recomputed: marks of it stay. */
  readonly tooLarge: readonly Cell[];
}

/**
 * Repairs one bounded step of the marks that this writer repairs. When none were removed, those that are left are of cells that
 * are too large. A failure leaves the marks, and cells that are recomputed once more.
 *
 * @param writer as at {@link markStaleHours}
 * @param leftAlone accounts whose marks stay
 */
export async function repairNext(
  warehouse: Warehouse,
  writer: string,
  { hours, statementRows }: RepairLimits = REPAIR_LIMITS,
  leftAlone: readonly string[] = [],
): Promise<Repaired> {
  const marks = await readDueMarks(warehouse, writer, hours, leftAlone);
  if (marks.length === 0) return { marks: 0, hourly: 0, daily: 0, tooLarge: [] };
  const cells = cellsOf(marks, 'hourly');
  const largeHours = await recompute(warehouse, 'hourly', cells, statementRows);
  // Read after the hours are durable: a sealer that publishes a later watermark finds them.
  const { daily } = await readWatermarks(warehouse);
  const days = cellsOf(marks, 'daily').filter(({ bucket }) => bucket < daily.sealingUntil);
  const largeDays = await recompute(warehouse, 'daily', days, statementRows);
  const [hourCells, dayCells] = [new Set(largeHours.map(keyOf)), new Set(largeDays.map(keyOf))];
  const isDone = (accountId: string) => (hour: EpochMs) =>
    !hourCells.has(keyOf({ accountId, bucket: hour })) &&
    !dayCells.has(keyOf({ accountId, bucket: bucketOf(hour, 'daily') }));
  const done = marks.filter((mark) => mark.hours.every(isDone(mark.accountId)));
  if (done.length > 0) await removeMarks(warehouse, done);
  return {
    ...{ marks: done.length, hourly: cells.length - hourCells.size, daily: days.length - dayCells.size },
    tooLarge: [...largeHours, ...largeDays],
  };
}

async function recompute(
  warehouse: Warehouse,
  grain: Grain,
  cells: readonly Cell[],
  statementRows: number,
): Promise<Cell[]> {
  const tooLarge: Cell[] = [];
  for (const named of inParts(cells, nameBytes, MAX_NAME_BYTES)) {
    // A part has at least one cell, however many rows that has.
    const parts = named.length === 1 ? [named] : inParts(named, await sizesOf(warehouse, grain, named), statementRows);
    for (const part of parts) tooLarge.push(...(await recomputePart(warehouse, grain, part)));
  }
  return tooLarge;
}

/** As a sealer computes a slice: see sealing.ts. @returns the cells that are too large for the server's limits */
async function recomputePart(warehouse: Warehouse, grain: Grain, part: readonly Cell[]): Promise<readonly Cell[]> {
  try {
    await recomputeCells(warehouse, grain, { cells: part });
    return [];
  } catch (error) {
    if (!isStatementLimit(error)) throw error;
    const sizes = await readCellRows(warehouse, grain, part);
    if (sizes.reduce((sum, { rows }) => sum + rows, 0) < LARGE_CELL_ROWS) throw error;
  }
  if (part.length === 1) return part;
  const [left, right] = [part.slice(0, part.length >> 1), part.slice(part.length >> 1)];
  return [...(await recomputePart(warehouse, grain, left)), ...(await recomputePart(warehouse, grain, right))];
}

/** @returns how many rows a cell is computed from */
async function sizesOf(warehouse: Warehouse, grain: Grain, cells: readonly Cell[]): Promise<(cell: Cell) => number> {
  const found = await readCellRows(warehouse, grain, cells);
  const rows = new Map(found.map((cell) => [keyOf(cell), cell.rows]));
  return (cell) => rows.get(keyOf(cell)) ?? 0;
}

function keyOf({ accountId, bucket }: Cell): string {
  return `${bucket} ${accountId}`;
}

function nameBytes({ accountId }: Cell): number {
  return BYTES_PER_CELL + BYTES_PER_ACCOUNT_BYTE * Buffer.byteLength(accountId);
}

/** The distinct cells that hold the hours. */
function cellsOf(marked: readonly AccountHours[], grain: Grain): Cell[] {
  const buckets = new Map<string, Set<EpochMs>>();
  for (const { accountId, hours } of marked) {
    const known = buckets.get(accountId) ?? new Set();
    buckets.set(accountId, known);
    for (const hour of hours) known.add(bucketOf(hour, grain));
  }
  return [...buckets].flatMap(([accountId, starts]) => Array.from(starts, (bucket) => ({ accountId, bucket })));
}

/** Cells in their order, each part as large as the limit allows, with at least one cell. */
function* inParts(cells: readonly Cell[], sizeOf: (cell: Cell) => number, limit: number): Generator<readonly Cell[]> {
  let part: Cell[] = [];
  let size = 0;
  for (const cell of cells) {
    const more = sizeOf(cell);
    if (part.length > 0 && size + more > limit) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(cell);
    size += more;
  }
  if (part.length > 0) yield part;
}
