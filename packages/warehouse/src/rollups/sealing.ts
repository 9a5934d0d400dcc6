/**
 * Sealing: computing the cells of past hours and days and declaring that queries may read them. Correct with any number
 * of sealers at once, paused or killed anywhere: the argument is at {@link repairCells}. Source: DESIGN section 5.
 */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../client.js';
import { readRows, type Statement } from '../statement.js';
import { bucketOf, CELL_TABLE, GRAIN_MS, type Grain } from './grain.js';
import { recomputeCells } from './recompute.js';
import { raiseSeal, readSeals } from './seals.js';

/** One bucket is the least, however many rows it has. */
const STEP_ROWS = { hourly: 1_000_000, daily: 20_000 } as const satisfies Record<Grain, number>;

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
 * @returns undefined when there was nothing to seal. A failure leaves the step to the next call, whoever makes it.
 */
export async function sealNext(
  warehouse: Warehouse,
  due: EpochMs,
  stepRows: Readonly<Record<Grain, number>> = STEP_ROWS,
): Promise<SealedStep | undefined> {
  const { hourly, daily } = await readSeals(warehouse);
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
  const rows = await readRows(warehouse, stepStatement(grain, from, limit, stepRows), stepRow);
  const last = rows[0]?.last_bucket;
  const to = last === undefined ? limit : last * 1000 + GRAIN_MS[grain];
  await raiseSeal(warehouse, grain, { sealingUntil: to });
  await recomputeCells(warehouse, grain, { from, to });
  await raiseSeal(warehouse, grain, { sealedUntil: to });
  return { grain, from, to };
}

const stepRow = z.object({ last_bucket: z.number() });

/** The bucket with which the step is full; no row when it never gets full. Buckets that hold nothing cost nothing. */
export function stepStatement(grain: Grain, from: EpochMs, limit: EpochMs, stepRows: number): Statement {
  const [table, bucket] = grain === 'hourly' ? ['usage_events', 'event_hour'] : [CELL_TABLE.hourly, 'bucket'];
  return {
    name: 'read_sealing_step',
    query: `
SELECT toUnixTimestamp(step_bucket) AS last_bucket
FROM
(
  SELECT
    step_bucket,
    sum(count()) OVER (ORDER BY step_bucket) AS rows_until
  FROM ${table}
  WHERE ${bucket} >= toDateTime({from: UInt32}, 'UTC') AND ${bucket} < toDateTime({limit: UInt32}, 'UTC')
  GROUP BY ${grain === 'hourly' ? bucket : `toStartOfDay(${bucket})`} AS step_bucket
)
WHERE rows_until >= {step_rows: UInt64}
ORDER BY step_bucket
LIMIT 1`,
    query_params: { from: from / 1000, limit: limit / 1000, step_rows: stepRows },
  };
}
