import { type EpochMs, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';

/** How long the bucket of a cell is. UTC has no daylight saving, so every one has the same length. */
export const GRAINS = ['hourly', 'daily'] as const;
export type Grain = (typeof GRAINS)[number];

export const GRAIN_MS = { hourly: MS_PER_HOUR, daily: MS_PER_DAY } as const satisfies Record<Grain, number>;

export const CELL_TABLE = { hourly: 'usage_hourly', daily: 'usage_daily' } as const satisfies Record<Grain, string>;

/** The start of the bucket that holds the instant. */
export function bucketOf(instant: EpochMs, grain: Grain): EpochMs {
  return instant - (instant % GRAIN_MS[grain]);
}

/** The start of the first bucket that begins at the instant or after it. */
export function nextBucket(instant: EpochMs, grain: Grain): EpochMs {
  return bucketOf(instant + GRAIN_MS[grain] - 1, grain);
}
