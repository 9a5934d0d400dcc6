/** What a writer must do after it has stored events, so that sealed cells hold them too. Source: DESIGN section 5. */
import type { EpochMs } from '@meterline/catalog';
import type { Warehouse } from '../clickhouse/connection.js';
import { bucketOf, type Cell, type Grain } from './cells.js';
import { recomputeCells } from './recompute.js';
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
/** One statement must end long before its timeout: a repair that always times out would hold up its jobs for ever. */
const STATEMENT_ROWS = 500_000;

/** An event that has been stored, as far as its cells are concerned. */
export interface Stored {
  readonly accountId: string;
  readonly timestamp: EpochMs;
}

/** How many cells of each grain were recomputed, and whose. */
export interface Repaired extends Readonly<Record<Grain, number>> {
  /** With events in hours that are sealed or being sealed, each account once. */
  readonly accounts: readonly string[];
}

/**
 * Recomputes the cells of events that are durable, as far as their buckets are sealed or being sealed. To be called
 * after the insert has succeeded and before the job is acknowledged; calling it again does no harm.
 *
 * Why no event can fall between sealer and writer. For one grain, the sealer publishes `sealingUntil`, then takes its
 * snapshot of the source, then publishes `sealedUntil`; a writer writes to the source, then reads `sealingUntil`. Either
 * the write comes before the snapshot, and is in it, or it comes after, and then also after the publication, so that the
 * read that follows sees the watermark and the writer recomputes the cell itself. The source of hours is the events, and
 * the source of days is the cells of hours: that is why the days' watermark is read again, after the hours are written,
 * unless the first reading was enough.
 * Two writers of one cell cannot both miss the other: the later of the two snapshots holds both, and has the higher
 * version.
 *
 * @param statementRows about how many rows one statement reads at most
 */
export async function repairCells(
  warehouse: Warehouse,
  stored: readonly Stored[],
  statementRows = STATEMENT_ROWS,
): Promise<Repaired> {
  const before = await readWatermarks(warehouse);
  const hours = cellsBelow(before.hourly.sealingUntil, stored, 'hourly');
  if (hours.length === 0) return { hourly: 0, daily: 0, accounts: [] };
  await recompute(warehouse, 'hourly', hours, statementRows);
  const sources = hours.map(({ accountId, bucket }) => ({ accountId, timestamp: bucket }));
  // A watermark that was above all of them already cannot have fallen.
  const isKnown = sources.every(({ timestamp }) => timestamp < before.daily.sealingUntil);
  const { daily } = isKnown ? before : await readWatermarks(warehouse);
  const days = cellsBelow(daily.sealingUntil, sources, 'daily');
  await recompute(warehouse, 'daily', days, statementRows);
  const accounts = [...new Set(hours.map(({ accountId }) => accountId))];
  return { hourly: hours.length, daily: days.length, accounts };
}

async function recompute(
  warehouse: Warehouse,
  grain: Grain,
  cells: readonly Cell[],
  statementRows: number,
): Promise<void> {
  for (const named of inParts(cells, nameBytes, MAX_NAME_BYTES)) {
    // A part has at least one cell, however many rows that has.
    const parts = named.length === 1 ? [named] : inParts(named, await sizesOf(warehouse, grain, named), statementRows);
    for (const part of parts) await recomputeCells(warehouse, grain, { cells: part });
  }
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

/** The distinct cells that hold the events, as far as they may have been sealed. */
function cellsBelow(sealingUntil: EpochMs, stored: readonly Stored[], grain: Grain): Cell[] {
  const late = stored.filter(({ timestamp }) => timestamp < sealingUntil);
  return distinctCells(late, grain);
}

function distinctCells(stored: readonly Stored[], grain: Grain): Cell[] {
  const buckets = new Map<string, Set<EpochMs>>();
  for (const { accountId, timestamp } of stored) {
    const known = buckets.get(accountId) ?? new Set();
    buckets.set(accountId, known.add(bucketOf(timestamp, grain)));
  }
  return [...buckets].flatMap(([accountId, starts]) => [...starts].map((bucket) => ({ accountId, bucket })));
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
