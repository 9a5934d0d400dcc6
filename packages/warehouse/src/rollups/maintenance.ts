/**
 * What a maintainer of the rollups does: it recomputes dirty hours, and seals past hours and days. Each function does one bounded
 * step. Correct however often it is done, at once, paused or killed anywhere: the argument is in dirty-hours.ts. Source: DESIGN
 * section 5.
 */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import { readBounds } from '../bounds.js';
import { onEachShard, type Warehouse } from '../clickhouse/connection.js';
import { ForeignResponse, isStatementLimit } from '../clickhouse/errors.js';
import { allConflicts, type Conflicts, readConflictsOfHours } from './conflicts.js';
import { clearMarks, hoursOf, markUnreadable, readDueMarks } from './dirty-hours.js';
import {
  keyOf,
  LARGE_ROWS,
  readConflictsOfRollups,
  recomputeEach,
  recomputeRollups,
  type StatementLimits,
} from './recompute.js';
import { type AccountHours, bucketOf, type Grain, type RollupKey } from './rollup-rows.js';
import { readSlices, readSourceRows, readStepEnd, type SizedSlice } from './sources.js';
import { lowestWatermarks, raiseWatermarks } from './watermarks.js';

export interface DirtyLimits extends StatementLimits {
  /** About how many dirty hours one step takes. It has at least one mark, however many hours that has. */
  readonly hours: number;
}

export const DIRTY_LIMITS: DirtyLimits = { hours: 10_000, statementRows: 500_000, largeRows: LARGE_ROWS };

/** How many marks were cleared, and how many rollup rows of each grain were recomputed. */
export interface Recomputed extends Readonly<Record<Grain | 'marks', number>> {
  /** What the server's limits do not let be recomputed: marked again, and due in an hour. */
  readonly tooLarge: readonly RollupKey[];
  readonly conflicts: Conflicts;
}

/**
 * Recomputes the rows of one bounded step of dirty hours of a shard, then those of their days, and clears the marks. A failure
 * leaves the marks, and rows that are recomputed once more. When no mark was cleared, none was due.
 */
export async function recomputeDirtyHours(
  shard: Warehouse,
  { hours, ...limits }: DirtyLimits = DIRTY_LIMITS,
): Promise<Recomputed> {
  const marks = await readDueMarks(shard, hours);
  if (marks.length === 0) return { marks: 0, hourly: 0, daily: 0, tooLarge: [], conflicts: { events: 0 } };
  const hourly = bucketsOf(marks, 'hourly');
  const largeHours = await recomputeEach(shard, 'hourly', hourly, limits);
  // Read after the hours are durable: a sealer that publishes a later watermark finds them.
  const { sealingUntil } = (await readBounds(shard)).daily;
  const daily = bucketsOf(marks, 'daily').filter(({ bucket }) => bucket < sealingUntil);
  const largeDays = await recomputeEach(shard, 'daily', daily, limits);
  await clearMarks(shard, marks, hoursLeft(marks, largeHours, largeDays));
  const conflicts = await readConflictsOfRollups(shard, hourly);
  return {
    ...{ marks: marks.length, hourly: hourly.length - largeHours.length, daily: daily.length - largeDays.length },
    tooLarge: [...largeHours, ...largeDays],
    conflicts,
  };
}

function hoursLeft(
  marks: readonly AccountHours[],
  largeHours: readonly RollupKey[],
  largeDays: readonly RollupKey[],
): AccountHours[] {
  const [hourKeys, dayKeys] = [new Set(largeHours.map(keyOf)), new Set(largeDays.map(keyOf))];
  const isLeft = (row: RollupKey) =>
    hourKeys.has(keyOf(row)) || dayKeys.has(keyOf({ ...row, bucket: bucketOf(row.bucket, 'daily') }));
  return hoursOf(bucketsOf(marks, 'hourly').filter(isLeft));
}

/** The distinct rows that hold the hours. */
function bucketsOf(marked: readonly AccountHours[], grain: Grain): RollupKey[] {
  const buckets = new Map<string, Set<EpochMs>>();
  for (const { accountId, hours } of marked) {
    const known = buckets.get(accountId) ?? new Set();
    buckets.set(accountId, known);
    for (const hour of hours) known.add(bucketOf(hour, grain));
  }
  return [...buckets].flatMap(([accountId, starts]) => Array.from(starts, (bucket) => ({ accountId, bucket })));
}

/** Rows are events of hours, and groups of the rows of hours. */
export interface SealingLimits extends StatementLimits {
  /** About how many rows one step reads on a shard. A step has at least one bucket, however many rows that has. */
  readonly stepRows: number;
}

const SEALING_LIMITS: SealingLimits = { stepRows: 4_000_000, statementRows: 250_000, largeRows: LARGE_ROWS };

/** A step of sealing: every row with from <= bucket < to was computed, and may be read, but for those that are too large. */
export interface SealedStep {
  readonly grain: Grain;
  readonly from: EpochMs;
  readonly to: EpochMs;
  /** What the server's limits do not let be computed: marked, and so answered from hours or events. */
  readonly tooLarge: readonly RollupKey[];
  readonly conflicts: Conflicts;
}

/**
 * Seals one bounded step of buckets that ended before `due`, on all shards, hours before their days.
 * @returns undefined when there was nothing to seal. A step that failed is left to the next call, of this process or another.
 */
export async function sealNext(
  shards: readonly Warehouse[],
  due: EpochMs,
  limits: SealingLimits = SEALING_LIMITS,
): Promise<SealedStep | undefined> {
  const { hourly, daily } = await lowestWatermarks(shards);
  return (
    (await sealStep(shards, 'hourly', hourly.sealedUntil, bucketOf(due, 'hourly'), limits)) ??
    // Days are made of hours, so only hours that are sealed make a day.
    sealStep(shards, 'daily', daily.sealedUntil, bucketOf(hourly.sealedUntil, 'daily'), limits)
  );
}

async function readClock(shard: Warehouse): Promise<EpochMs> {
  const statement = { name: 'read_clock', query: 'SELECT toUnixTimestamp(now()) AS second' };
  const [row] = await shard.read(statement, z.object({ second: z.number() }));
  if (!row) throw new ForeignResponse('the response has no time');
  return row.second * 1000;
}

/** The slices are read after the first watermark is raised: a row that is in none of them has only later events. */
async function sealStep(
  shards: readonly Warehouse[],
  grain: Grain,
  from: EpochMs,
  wanted: EpochMs,
  limits: SealingLimits,
): Promise<SealedStep | undefined> {
  if (from >= wanted) return undefined;
  // A watermark never falls again, so a clock of ours that is ahead must not raise it.
  const limit = Math.min(wanted, bucketOf(Math.min(...(await onEachShard(shards, readClock))), grain));
  if (from >= limit) return undefined;
  const { stepRows, statementRows } = limits;
  const ends = await onEachShard(shards, (shard) => readStepEnd(shard, grain, { from, limit, stepRows }));
  const to = Math.min(...ends);
  await raiseWatermarks(shards, grain, { sealingUntil: to });
  const tooLarge = await onEachShard(shards, async (shard) => {
    const found: RollupKey[] = [];
    for (const slice of await readSlices(shard, grain, { from, to, sliceRows: statementRows })) {
      found.push(...(await sealSlice(shard, grain, slice, limits)));
    }
    // Before the second watermark, which lets queries read what is not there: see dirty-hours.ts.
    await markUnreadable(shard, found);
    return found;
  });
  await raiseWatermarks(shards, grain, { sealedUntil: to });
  const conflicts =
    grain === 'hourly' ? await onEachShard(shards, (shard) => readConflictsOfHours(shard, from, to)) : [];
  return { grain, from, to, tooLarge: tooLarge.flat(), conflicts: allConflicts(conflicts) };
}

/** A slice that meets a limit of the server is computed in smaller parts. @returns the rows that are too large */
async function sealSlice(
  shard: Warehouse,
  grain: Grain,
  slice: SizedSlice,
  { statementRows, largeRows }: StatementLimits,
): Promise<readonly RollupKey[]> {
  try {
    await recomputeRollups(shard, grain, slice);
    return [];
  } catch (error) {
    if (!isStatementLimit(error) || slice.rows < largeRows) throw error;
  }
  const rows = await readSourceRows(shard, grain, slice);
  if (rows.length === 1) return rows;
  return recomputeEach(shard, grain, rows, { statementRows: Math.ceil(statementRows / DIVIDED_BY), largeRows });
}

/** Into how many parts a slice that is too large for a statement is divided. */
const DIVIDED_BY = 8;
