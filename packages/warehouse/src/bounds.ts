/**
 * Reads the watermarks (up to which time rollup rows are complete) and the retention bounds (before which time months are closed or
 * dropped). One statement reads both, because every query and every insert needs both.
 */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from './clickhouse/connection.js';
import { GRAINS, type Grain } from './rollups/rollup-rows.js';

export interface GrainWatermarks {
  /** A process may be computing the rollup rows before this instant. So a worker that stores an event there must mark its hour as dirty. */
  readonly sealingUntil: EpochMs;
  /** The rollup rows before this instant contain all acknowledged events, except the events of dirty hours (see dirty-hours.ts). */
  readonly sealedUntil: EpochMs;
}
export type Watermarks = Readonly<Record<Grain, GrainWatermarks>>;

/**
 * A month is first closed to new events, then its rollup rows are made final, and then its events are dropped. Each bound is the start of a
 * UTC month, or 1970 if it was never set. No bound is later than the bound above it.
 */
export interface RetentionBounds {
  /** New events before this instant are rejected. An operator may lower this bound again, down to `droppingBefore`. */
  readonly closedBefore: EpochMs;
  /** The rollup rows before this instant are being made final. An event stored there now may be too late to count. This bound never falls. */
  readonly droppingBefore: EpochMs;
  /** The rollup rows before this instant are final, and their events may be deleted. So nothing may read those events. This bound never falls. */
  readonly droppedBefore: EpochMs;
}

const READ_BOUNDS: Statement = {
  name: 'read_bounds',
  query: `
SELECT
  toString(grain) AS name,
  toUnixTimestamp(max(sealing_until)) AS second,
  toUnixTimestamp(max(sealed_until)) AS sealed
FROM rollup_watermarks
GROUP BY grain
UNION ALL
SELECT
  toString(bound) AS name,
  toUnixTimestamp(if(bound = 'closed', argMax(before, set_at), max(before))) AS second,
  0 AS sealed
FROM retention_bounds
GROUP BY bound`,
};

const boundRow = z.object({
  name: z.enum([...GRAINS, 'closed', 'dropping', 'dropped']),
  second: z.number(),
  sealed: z.number(),
});

export type Bound = 'closed' | 'dropping' | 'dropped';

/** Reads the bounds from one shard, because every shard has a copy. */
export async function readBounds(warehouse: Warehouse): Promise<Watermarks & RetentionBounds> {
  const rows = new Map((await warehouse.read(READ_BOUNDS, boundRow)).map((row) => [row.name, row]));
  const watermarks = (grain: Grain) => {
    const { second = 0, sealed = 0 } = rows.get(grain) ?? {};
    return { sealingUntil: second * 1000, sealedUntil: sealed * 1000 };
  };
  const bound = (name: Bound) => (rows.get(name)?.second ?? 0) * 1000;
  const droppedBefore = bound('dropped');
  const droppingBefore = Math.max(bound('dropping'), droppedBefore);
  return {
    hourly: watermarks('hourly'),
    daily: watermarks('daily'),
    closedBefore: Math.max(bound('closed'), droppingBefore),
    droppingBefore,
    droppedBefore,
  };
}
