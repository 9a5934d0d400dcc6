/** What whoever stores events must do afterwards, so that sealed cells hold them too. Source: DESIGN section 5. */
import type { EpochMs } from '@meterline/catalog';
import type { Warehouse } from '../client.js';
import { bucketOf, type Grain } from './grain.js';
import { type Cell, recomputeCells } from './recompute.js';
import { readSeals } from './seals.js';

/** Names of cells are part of the request's URL; so many characters of account ids are far from its limit. */
const MAX_NAMED = 500;
const MAX_NAME_CHARACTERS = 20_000;

/** An event that has been stored, as far as its cells are concerned. */
export interface Stored {
  readonly accountId: string;
  readonly timestamp: EpochMs;
}

/** How many cells of each grain were recomputed. */
export type Repaired = Readonly<Record<Grain, number>>;

/**
 * Recomputes the cells of events that are durable, as far as their buckets are sealed or being sealed. To be called
 * after the insert has succeeded and before anyone is told so; calling it again does no harm.
 *
 * Why no event can fall between sealer and writer. For one grain, the sealer publishes `sealingUntil`, then takes its
 * snapshot of the source, then publishes `sealedUntil`; a writer writes to the source, then reads `sealingUntil`. Either
 * the write comes before the snapshot, and is in it, or it comes after, and then also after the publication, so that the
 * read that follows sees the watermark and the writer recomputes the cell itself. The source of hours is the truth, and
 * the source of days is the cells of hours: that is why the days' watermark is read anew, after the hours are written,
 * unless the first reading sufficed.
 * Two writers of one cell cannot both miss the other: the later of the two snapshots holds both, and has the higher
 * version.
 */
export async function repairCells(warehouse: Warehouse, stored: readonly Stored[]): Promise<Repaired> {
  const before = await readSeals(warehouse);
  const hours = cellsBelow(before.hourly.sealingUntil, stored, 'hourly');
  if (hours.length === 0) return { hourly: 0, daily: 0 };
  await recompute(warehouse, 'hourly', hours);
  const sources = hours.map(({ accountId, bucket }) => ({ accountId, timestamp: bucket }));
  // A watermark that was above all of them already cannot have fallen.
  const isKnown = sources.every(({ timestamp }) => timestamp < before.daily.sealingUntil);
  const { daily } = isKnown ? before : await readSeals(warehouse);
  const days = cellsBelow(daily.sealingUntil, sources, 'daily');
  await recompute(warehouse, 'daily', days);
  return { hourly: hours.length, daily: days.length };
}

async function recompute(warehouse: Warehouse, grain: Grain, cells: readonly Cell[]): Promise<void> {
  for (const named of inStatements(cells)) await recomputeCells(warehouse, grain, { cells: named });
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

function* inStatements(cells: readonly Cell[]): Generator<Cell[]> {
  let named: Cell[] = [];
  let characters = 0;
  for (const cell of cells) {
    if (named.length === MAX_NAMED || (named.length > 0 && characters + cell.accountId.length > MAX_NAME_CHARACTERS)) {
      yield named;
      named = [];
      characters = 0;
    }
    named.push(cell);
    characters += cell.accountId.length;
  }
  if (named.length > 0) yield named;
}
