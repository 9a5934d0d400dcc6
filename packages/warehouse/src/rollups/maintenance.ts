/**
 * Maintains the rollup rows: recomputes dirty hours (hours with late events), and seals past hours and days (computes their rows and then
 * lets queries read them). Each function performs one bounded step. Steps may be repeated, run concurrently, or be suspended or killed at
 * any point, and the rollup rows stay correct: see dirty-hours.ts. Source: docs/decisions/0006.
 */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import { readBounds } from '../bounds.js';
import { onEachShard, type Warehouse } from '../clickhouse/connection.js';
import { ForeignResponseError, isStatementLimit } from '../clickhouse/errors.js';
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
  /** Approximate number of dirty hours per step. A step reads at least one mark, even if this mark has more hours. */
  readonly hours: number;
}

export const DIRTY_LIMITS: DirtyLimits = { hours: 10_000, statementRows: 500_000, largeRows: LARGE_ROWS };

export interface Recomputed extends Readonly<Record<Grain | 'marks', number>> {
  /** Rollup rows that exceed the server's limits. Their hours stay dirty, and the next attempt is due in an hour. */
  readonly tooLarge: readonly RollupKey[];
  readonly conflicts: Conflicts;
}

/**
 * Recomputes some of a shard's dirty hours, then the days that contain them, and clears the marks of these hours. After a failure the marks
 * remain, and the next step repeats the work. If no mark is due, `marks` is 0.
 */
export async function recomputeDirtyHours(
  shard: Warehouse,
  { hours, ...limits }: DirtyLimits = DIRTY_LIMITS,
): Promise<Recomputed> {
  const marks = await readDueMarks(shard, hours);
  if (marks.length === 0) return { marks: 0, hourly: 0, daily: 0, tooLarge: [], conflicts: { events: 0 } };
  const hourly = bucketsOf(marks, 'hourly');
  const largeHours = await recomputeEach(shard, 'hourly', hourly, limits);
  // Read the watermark after the hourly rows are durable. So a process that begins to seal one of these days later finds these rows.
  const { sealingUntil } = (await readBounds(shard)).daily;
  const daily = bucketsOf(marks, 'daily').filter(({ bucket }) => bucket < sealingUntil);
  const largeDays = await recomputeEach(shard, 'daily', daily, limits);
  await clearMarks(shard, marks, hoursLeft(marks, largeHours, largeDays));
  const conflicts = await readConflictsOfRollups(shard, hourly);
  return {
    marks: marks.length,
    hourly: hourly.length - largeHours.length,
    daily: daily.length - largeDays.length,
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

function bucketsOf(marked: readonly AccountHours[], grain: Grain): RollupKey[] {
  const buckets = new Map<string, Set<EpochMs>>();
  for (const { accountId, hours } of marked) {
    const known = buckets.get(accountId) ?? new Set();
    buckets.set(accountId, known);
    for (const hour of hours) known.add(bucketOf(hour, grain));
  }
  return [...buckets].flatMap(([accountId, starts]) => Array.from(starts, (bucket) => ({ accountId, bucket })));
}

/** Limits of how many rows are added up. For hourly rollup rows, these are events. For daily ones, these are the sums in hourly rows. */
export interface SealingLimits extends StatementLimits {
  /** Approximate number of rows that one step reads on a shard. A step includes at least one bucket, even if this bucket has more rows. */
  readonly stepRows: number;
}

const SEALING_LIMITS: SealingLimits = { stepRows: 4_000_000, statementRows: 250_000, largeRows: LARGE_ROWS };

/** The result of one step. All rollup rows with from <= bucket < to are stored and may be read, except those that are too large. */
export interface SealedStep {
  readonly grain: Grain;
  readonly from: EpochMs;
  readonly to: EpochMs;
  /** Rollup rows that exceed the server's limits. Their hours are marked as dirty, so queries read hourly rows or events instead. */
  readonly tooLarge: readonly RollupKey[];
  readonly conflicts: Conflicts;
}

/**
 * Seals the next hours that ended before `due`, or, if there are none, the next days: computes their rollup rows, and lets queries read
 * them. After a failure, the next call repeats the step, in this or another process. Returns undefined if there is nothing to seal.
 */
export async function sealNext(
  shards: readonly Warehouse[],
  due: EpochMs,
  limits: SealingLimits = SEALING_LIMITS,
): Promise<SealedStep | undefined> {
  const { hourly, daily } = await lowestWatermarks(shards);
  return (
    (await sealStep(shards, 'hourly', hourly.sealedUntil, bucketOf(due, 'hourly'), limits)) ??
    // A day can be sealed only after all its hours, because its rollup rows are computed from theirs.
    sealStep(shards, 'daily', daily.sealedUntil, bucketOf(hourly.sealedUntil, 'daily'), limits)
  );
}

async function readClock(shard: Warehouse): Promise<EpochMs> {
  const statement = { name: 'read_clock', query: 'SELECT toUnixTimestamp(now()) AS second' };
  const [row] = await shard.read(statement, z.object({ second: z.number() }));
  if (!row) throw new ForeignResponseError('the response has no time');
  return row.second * 1000;
}

/**
 * Publishes `sealingUntil` before it reads the rows to sum up. So a worker that stores an event too late for this step reads the new value,
 * and marks the event's hour as dirty: see dirty-hours.ts.
 */
async function sealStep(
  shards: readonly Warehouse[],
  grain: Grain,
  from: EpochMs,
  due: EpochMs,
  limits: SealingLimits,
): Promise<SealedStep | undefined> {
  if (from >= due) return undefined;
  // Do not trust the local clock alone. If it runs ahead, it would raise the watermark too far, and a watermark never falls.
  const limit = Math.min(due, bucketOf(Math.min(...(await onEachShard(shards, readClock))), grain));
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
    // Mark the rows before raising `sealedUntil`, which allows queries to read the step: see dirty-hours.ts.
    await markUnreadable(shard, found);
    return found;
  });
  await raiseWatermarks(shards, grain, { sealedUntil: to });
  const conflicts =
    grain === 'hourly' ? await onEachShard(shards, (shard) => readConflictsOfHours(shard, from, to)) : [];
  return { grain, from, to, tooLarge: tooLarge.flat(), conflicts: allConflicts(conflicts) };
}

/** Computes a range of rollup rows, in smaller parts if it exceeds the server's limits. Returns the rollup rows that are too large. */
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

/** A range of rollup rows that is too large for one statement is split into about this many parts. */
const DIVIDED_BY = 8;
