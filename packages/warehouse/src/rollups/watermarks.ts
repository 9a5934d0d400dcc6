/**
 * Watermarks: up to which hour and day the rollups may be read. Both of a grain only rise. Source: DESIGN section 5.
 *
 * Watermarks are the same for all shards, and each shard has a copy. `sealingUntil` is on every shard before a snapshot is taken on
 * any, and a bucket is recomputed on every shard before `sealedUntil` is on any: so whichever copy a worker or a query reads
 * will do, also while other shards are away.
 */
import type { EpochMs } from '@meterline/catalog';
import { type GrainWatermarks, readBounds, type Watermarks } from '../bounds.js';
import { insertRows, onEachShard, type Warehouse } from '../clickhouse/connection.js';
import type { AccountBucket, Grain } from './rollup-rows.js';

/** Below which instant the rollup rows of each grain may be read. */
export type SealedUntil = Readonly<Record<Grain, EpochMs>>;

/** Which rollups a query may read: those below these instants, without the dirty hours and the days that they are of. */
export interface ReadableRollups extends SealedUntil {
  /** Hours that are answered from the events, ascending: all with their accounts, or all of every account. */
  readonly dirtyHours: readonly AccountBucket[];
}

export const NO_ROLLUPS: ReadableRollups = { hourly: 0, daily: 0, dirtyHours: [] };

/** Raises watermarks on every shard; one that is higher already stays. Durable when the promise resolves. */
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

/** The watermarks that hold on every shard. */
export async function lowestWatermarks(shards: readonly Warehouse[]): Promise<Watermarks> {
  const found = await onEachShard(shards, readBounds);
  const lowest = (grain: Grain): GrainWatermarks => ({
    sealingUntil: Math.min(...found.map((watermarks) => watermarks[grain].sealingUntil)),
    sealedUntil: Math.min(...found.map((watermarks) => watermarks[grain].sealedUntil)),
  });
  return { hourly: lowest('hourly'), daily: lowest('daily') };
}
