/** Defines the rows of usage_hourly and usage_daily: the usage of one account in one hour or day. Source: docs/decisions/0006. */
import { type EpochMs, type GroupByDimension, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';

/** A rollup row covers an hour or a day of an account. All days have the same length, because UTC has no daylight saving time. */
export const GRAINS = ['hourly', 'daily'] as const;
export type Grain = (typeof GRAINS)[number];

export const GRAIN_MS = { hourly: MS_PER_HOUR, daily: MS_PER_DAY } as const satisfies Record<Grain, number>;

export const ROLLUP_TABLE = { hourly: 'usage_hourly', daily: 'usage_daily' } as const satisfies Record<Grain, string>;

export interface RollupKey {
  readonly accountId: string;
  readonly bucket: EpochMs;
}

export interface AccountHours {
  readonly accountId: string;
  readonly hours: readonly EpochMs[];
}

/** A rollup row has two sets of parallel arrays. Each set has one entry per combination of values of its dimensions. */
export const ROLLUP_ARRAYS = {
  summary: ['workspace', 'resource_type', 'billing_dimension'],
  detail: ['workspace', 'resource_type', 'resource_name', 'resource_uuid', 'billing_dimension'],
} as const satisfies Record<string, readonly GroupByDimension[]>;
export type RollupArrays = keyof typeof ROLLUP_ARRAYS;

export function bucketOf(instant: EpochMs, grain: Grain): EpochMs {
  return instant - (instant % GRAIN_MS[grain]);
}

export function nextBucket(instant: EpochMs, grain: Grain): EpochMs {
  return bucketOf(instant + GRAIN_MS[grain] - 1, grain);
}
