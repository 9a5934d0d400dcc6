/**
 * Sealing: computing the cells of past hours and days and declaring that queries may read them. Correct with any number
 * of sealers at once, paused or killed anywhere: the argument is at {@link repairCells}. Source: DESIGN section 5.
 */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../clickhouse/connection.js';
import { bucketOf, GRAIN_MS, type Grain } from './cells.js';
import { recomputeCells, stepStatement } from './recompute.js';
import { raiseWatermarks, readWatermarks } from './watermarks.js';

/** Events of hours, groups of hours' cells. A step has at least one bucket, however many rows that has. */
const STEP_ROWS = { hourly: 1_000_000, daily: 1_000_000 } as const satisfies Record<Grain, number>;

/** One step: every cell with from <= bucket < to was computed, and may be read. */
export interface SealedStep {
  readonly grain: Grain;
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/**
 * Seals one bounded step of buckets that ended before `due`, hours before their days.
 *
 * @param stepRows about how many rows of its source one step of each grain reads
 * @returns undefined when there was nothing to seal. A step that failed is left to the next call, of this process or another.
 */
export async function sealNext(
  warehouse: Warehouse,
  due: EpochMs,
  stepRows: Readonly<Record<Grain, number>> = STEP_ROWS,
): Promise<SealedStep | undefined> {
  const { hourly, daily } = await readWatermarks(warehouse);
  const step = (grain: Grain, from: EpochMs, limit: EpochMs) =>
    sealStep(warehouse, grain, from, limit, stepRows[grain]);
  return (
    (await step('hourly', hourly.sealedUntil, bucketOf(due, 'hourly'))) ??
    // Days are made of hours, so only hours that are sealed make a day.
    (await step('daily', daily.sealedUntil, bucketOf(hourly.sealedUntil, 'daily')))
  );
}

async function sealStep(
  warehouse: Warehouse,
  grain: Grain,
  from: EpochMs,
  limit: EpochMs,
  stepRows: number,
): Promise<SealedStep | undefined> {
  if (from >= limit) return undefined;
  const rows = await warehouse.read(stepStatement(grain, from, limit, stepRows), stepRow);
  const last = rows[0]?.last_bucket;
  const to = last === undefined ? limit : last * 1000 + GRAIN_MS[grain];
  await raiseWatermarks(warehouse, grain, { sealingUntil: to });
  await recomputeCells(warehouse, grain, { from, to });
  await raiseWatermarks(warehouse, grain, { sealedUntil: to });
  return { grain, from, to };
}

const stepRow = z.object({ last_bucket: z.number() });
