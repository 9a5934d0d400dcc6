/** Watermarks: up to which hour and day the cells may be read. Both of a grain only rise. Source: DESIGN section 5. */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { insertRows } from '../clickhouse/insert.js';
import { GRAINS, type Grain } from './cells.js';

export interface GrainWatermarks {
  /** Cells below may be under computation already: a writer that stores an event there must mark its hour as stale. */
  readonly sealingUntil: EpochMs;
  /** Cells below hold everything that is acknowledged, but for hours that are marked as stale: see marks.ts. */
  readonly sealedUntil: EpochMs;
}
export type Watermarks = Readonly<Record<Grain, GrainWatermarks>>;

/** Below which instant the cells of each grain may be read. */
export type SealedUntil = Readonly<Record<Grain, EpochMs>>;

/** Which cells a question may read: those below these instants, without the stale hours and the days that they are of. */
export interface ReadableCells extends SealedUntil {
  /** Ascending starts of hours that are answered from the events. */
  readonly staleHours: readonly EpochMs[];
}

export const NO_CELLS: ReadableCells = { hourly: 0, daily: 0, staleHours: [] };

/** @param shard through the table that leads to all shards, which alone has the column; undefined: all rows */
function watermarksStatement(shard: number | undefined): Statement {
  return {
    name: 'read_rollup_seals',
    query: `
SELECT
  grain,
  toUnixTimestamp(max(sealing_until)) AS sealing_until,
  toUnixTimestamp(max(sealed_until)) AS sealed_until
FROM rollup_seals
WHERE ${shard === undefined ? 'true' : 'shard = {shard: UInt32}'}
GROUP BY grain`,
    query_params: shard === undefined ? {} : { shard },
    isShort: true,
  };
}

const watermarksRow = z.object({ grain: z.enum(GRAINS), sealing_until: z.number(), sealed_until: z.number() });

/**
 * A grain that was never sealed has both watermarks at 1970.
 * @param shard its number, for a warehouse of all shards of a cluster; undefined for one server or a shard's own warehouse
 */
export async function readWatermarks(warehouse: Warehouse, shard?: number): Promise<Watermarks> {
  const rows = await warehouse.read(watermarksStatement(shard), watermarksRow);
  const ofGrain = (grain: Grain): GrainWatermarks => {
    const row = rows.find((candidate) => candidate.grain === grain);
    return { sealingUntil: (row?.sealing_until ?? 0) * 1000, sealedUntil: (row?.sealed_until ?? 0) * 1000 };
  };
  return { hourly: ofGrain('hourly'), daily: ofGrain('daily') };
}

/** Raises watermarks; one that is higher already stays. Durable when the promise resolves. */
export async function raiseWatermarks(
  warehouse: Warehouse,
  grain: Grain,
  { sealingUntil = 0, sealedUntil = 0 }: Partial<GrainWatermarks>,
): Promise<void> {
  const raised = {
    grain,
    sealing_until: Math.floor(sealingUntil / 1000),
    sealed_until: Math.floor(sealedUntil / 1000),
  };
  await insertRows(warehouse, 'rollup_seals', [raised], 'raise_rollup_seal');
}
