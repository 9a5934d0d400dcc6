/**
 * Sealing: computing the cells of past hours and days and declaring that queries may read them. Correct with any number
 * of sealers at once, paused or killed anywhere: the argument is in marks.ts. Source: DESIGN section 5.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { EpochMs } from '@meterline/catalog';
import type { Warehouse } from '../clickhouse/connection.js';
import { isStatementLimit } from '../clickhouse/errors.js';
import { bucketOf, type Cell, type Grain } from './cells.js';
import { markCells } from './marks.js';
import { LARGE_CELL_ROWS, recomputeCells } from './recompute.js';
import { readSlices, readStepEnd, type SizedSlice } from './sizes.js';
import { raiseWatermarks, readWatermarks } from './watermarks.js';

/** Rows are events of hours, and groups of hours' cells. */
export interface SealingLimits {
  /** About how many rows one step reads. A step has at least one bucket, however many rows that has. */
  readonly stepRows: Readonly<Record<Grain, number>>;
  /** About how many of them one statement reads. It takes a few hundred bytes of the server's memory for each. */
  readonly statementRows: number;
  /** A statement of so many rows that meets a limit of the server is at fault; with fewer it is the server, which may recover. */
  readonly largeRows: number;
  /** When the statements of a step have taken so long, it rests after each, and before the next, as long as that has taken. */
  readonly restsAfterMs: number;
}

const LIMITS: SealingLimits = {
  stepRows: { hourly: 4_000_000, daily: 4_000_000 },
  statementRows: 250_000,
  largeRows: LARGE_CELL_ROWS,
  restsAfterMs: 1_000,
};

const LONGEST_REST_MS = 1_000;

/** One step: every cell with from <= bucket < to was computed, and may be read, but for those that are marked. */
export interface SealedStep {
  readonly grain: Grain;
  readonly from: EpochMs;
  readonly to: EpochMs;
  /** What the server's limits do not let be computed: marked, and so answered from hours or events. */
  readonly tooLarge: readonly Cell[];
}

/**
 * Seals one bounded step of buckets that ended before `due`, hours before their days.
 *
 * @param rest waits for so many milliseconds; one that rejects ends the step
 * @returns undefined when there was nothing to seal. A step that failed is left to the next call, of this process or another.
 */
export async function sealNext(
  warehouse: Warehouse,
  due: EpochMs,
  limits: SealingLimits = LIMITS,
  rest: Rest = delay,
): Promise<SealedStep | undefined> {
  const { hourly, daily } = await readWatermarks(warehouse);
  const step = (grain: Grain, from: EpochMs, limit: EpochMs) =>
    sealStep(warehouse, { grain, from, limit, limits, rest });
  return (
    (await step('hourly', hourly.sealedUntil, bucketOf(due, 'hourly'))) ??
    // Days are made of hours, so only hours that are sealed make a day.
    (await step('daily', daily.sealedUntil, bucketOf(hourly.sealedUntil, 'daily')))
  );
}

type Rest = (ms: number) => Promise<void>;

interface Step {
  readonly grain: Grain;
  readonly from: EpochMs;
  readonly limit: EpochMs;
  readonly limits: SealingLimits;
  readonly rest: Rest;
}

/** The slices are read after the first watermark is raised: a cell that is in none of them has only later events. */
async function sealStep(
  warehouse: Warehouse,
  { grain, from, limit, limits, rest }: Step,
): Promise<SealedStep | undefined> {
  if (from >= limit) return undefined;
  const to = await readStepEnd(warehouse, grain, { from, limit, stepRows: limits.stepRows[grain] });
  await raiseWatermarks(warehouse, grain, { sealingUntil: to });
  const slices = await readSlices(warehouse, grain, { from, to, sliceRows: limits.statementRows });
  // One at a time, with rests: what sealing takes is missing from a worker that uses all cores. See docs/decisions/0030.
  const tooLarge: Cell[] = [];
  let tookInAll = 0;
  for (const slice of slices) {
    const started = performance.now();
    tooLarge.push(...(await sealSlice(warehouse, { grain, largeRows: limits.largeRows }, slice)));
    const took = performance.now() - started;
    tookInAll += took;
    if (slice !== slices.at(-1) && tookInAll >= limits.restsAfterMs) await rest(Math.min(took, LONGEST_REST_MS));
  }
  // Before the second watermark, which lets questions read what is not there: see marks.ts.
  await markCells(warehouse, tooLarge);
  await raiseWatermarks(warehouse, grain, { sealedUntil: to });
  return { grain, from, to, tooLarge };
}

/** Into how many parts a slice that is too large for a statement is divided. */
const DIVIDED_BY = 8;

/**
 * Computes the cells of a slice. One that meets a limit of the server is divided until the cells at fault stand alone: a
 * single one must not keep those of all other accounts from being sealed.
 * @returns the cells at fault
 */
async function sealSlice(
  warehouse: Warehouse,
  how: { readonly grain: Grain; readonly largeRows: number },
  slice: SizedSlice,
): Promise<Cell[]> {
  const { grain, largeRows } = how;
  try {
    await recomputeCells(warehouse, grain, slice);
    return [];
  } catch (error) {
    if (!isStatementLimit(error) || slice.rows < largeRows) throw error;
  }
  const { first, last, rows } = slice;
  if (first[0] === last[0] && first[1] === last[1]) return [{ accountId: first[0], bucket: first[1] }];
  const tooLarge: Cell[] = [];
  for (const part of await readSlices(warehouse, grain, { ...slice, sliceRows: Math.ceil(rows / DIVIDED_BY) })) {
    tooLarge.push(...(await sealSlice(warehouse, how, part)));
  }
  return tooLarge;
}
