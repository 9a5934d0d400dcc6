/**
 * Reads and raises watermarks, which say up to which hour and day the rollup rows may be read. `sealedUntil` is the end of the rows that
 * are computed, and `sealingUntil` the end of the rows that are being computed. Both only rise. Source: docs/decisions/0006.
 *
 * Watermarks are the same for all shards, and each shard has a copy. `sealingUntil` is written to every shard before any shard takes its
 * snapshot. Every shard has recomputed a bucket before `sealedUntil` is written to any shard. So workers and queries may read any copy,
 * even while other shards are unavailable.
 */
import type { EpochMs, Window } from '@meterline/catalog';
import { type GrainWatermarks, readBounds, type Watermarks } from '../bounds.js';
import { insertRows, onEachShard, type Warehouse } from '../clickhouse/connection.js';
import type { Grain, RollupKey } from './rollup-rows.js';

export type SealedUntil = Readonly<Record<Grain, EpochMs>>;

/** Queries may read the rollup rows before these instants, except the rows of dirty hours and of their days. */
export interface ReadableRollups extends SealedUntil {
  readonly dirtyHours: DirtyHours;
}

/**
 * The hours of accounts that must be read from the events, ascending by hour. If there are too many to list in a statement: a few ascending
 * windows that cover these hours, in which every account is read from the events.
 */
export type DirtyHours = readonly RollupKey[] | { readonly windows: readonly Window[] };

export const NO_ROLLUPS: ReadableRollups = { hourly: 0, daily: 0, dirtyHours: [] };

/** Raises watermarks on every shard. A watermark that is already higher stays as it is. Durable when the promise resolves. */
export async function raiseWatermarks(
  shards: readonly Warehouse[],
  grain: Grain,
  { sealingUntil = 0, sealedUntil = 0 }: Partial<GrainWatermarks>,
): Promise<void> {
  const raised = {
    grain,
    sealing_until: Math.floor(sealingUntil / 1000),
    sealed_until: Math.floor(sealedUntil / 1000),
  };
  await onEachShard(shards, (shard) => insertRows(shard, 'rollup_watermarks', [raised], 'raise_watermark'));
}

export async function lowestWatermarks(shards: readonly Warehouse[]): Promise<Watermarks> {
  const found = await onEachShard(shards, readBounds);
  const lowest = (grain: Grain): GrainWatermarks => ({
    sealingUntil: Math.min(...found.map((watermarks) => watermarks[grain].sealingUntil)),
    sealedUntil: Math.min(...found.map((watermarks) => watermarks[grain].sealedUntil)),
  });
  return { hourly: lowest('hourly'), daily: lowest('daily') };
}
