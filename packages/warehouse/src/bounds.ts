/** Reads the watermarks of the rollups and the retention bounds, in one statement, because every query and every insert needs both. */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from './clickhouse/connection.js';
import { GRAINS, type Grain } from './rollups/rollup-rows.js';

export interface GrainWatermarks {
  /** Rollup rows below may already be being computed, so a writer that stores an event there must mark its hour as dirty. */
  readonly sealingUntil: EpochMs;
  /** Rollup rows below contain all acknowledged events, except those of dirty hours: see dirty-hours.ts. */
  readonly sealedUntil: EpochMs;
}
export type Watermarks = Readonly<Record<Grain, GrainWatermarks>>;

/** Starts of months in UTC. Each bound is at most the previous one. A bound that was never set is 1970. */
export interface RetentionBounds {
  /** Events before are rejected. An operator may lower this bound again, down to `droppingBefore`. */
  readonly closedBefore: EpochMs;
  /** Rollup rows before are being made final. An event stored there now may be too late to be counted. Only rises. */
  readonly droppingBefore: EpochMs;
  /** Rollup rows before are final, and their events may be gone, so nothing may read these events. Only rises. */
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

/** Reads the bounds from one shard; every shard has a copy. Bounds that were never set are 1970. */
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
