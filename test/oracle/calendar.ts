/** Instants, windows and buckets for the oracle, with nothing but the language's own UTC calendar. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** 1970 began on a Thursday; this is the first Monday of that year. */
const MONDAY = Date.UTC(1970, 0, 5);
/** The longest buckets of each resolution. */
const LENGTHS = { hourly: HOUR, daily: DAY, weekly: 7 * DAY, monthly: 31 * DAY };

export type Resolution = keyof typeof LENGTHS;

/** RFC 3339 in UTC with up to nine fraction digits, cut to the millisecond; undefined for anything else. */
export function instantOf(text: string): number | undefined {
  const [, seconds = '', fraction = ''] = /^(.{19})(?:\.(\d{1,9}))?(?:Z|\+00:00)$/.exec(text.toUpperCase()) ?? [];
  const instant = Date.parse(`${seconds}Z`);
  // Date.parse accepts 30 February and 24:00 and moves them to the next month or day; RFC 3339 does not allow them.
  if (Number.isNaN(instant) || new Date(instant).toISOString() !== `${seconds}.000Z`) return undefined;
  return instant + Number(`${fraction}000`.slice(0, 3));
}

/** Prints a fraction of a second only if it is not zero. */
export function printInstant(instant: number): string {
  return new Date(instant).toISOString().replace(/\.?0*Z$/, 'Z');
}

export function hourOf(instant: number): number {
  return bucketOf(instant, 'hourly');
}

/** The default by length of window; a year is a calendar year from the start (docs/api-contract.md). */
export function defaultResolution(start: number, end: number): Resolution {
  if (end - start < 7 * DAY) return 'hourly';
  if (end - start < 90 * DAY) return 'daily';
  return end < yearAfter(start) ? 'weekly' : 'monthly';
}

/** The latest end of a window with an explicit resolution. */
export function latestEnd(start: number, resolution: Resolution): number {
  if (resolution === 'hourly') return start + 7 * DAY;
  if (resolution === 'daily') return start + 90 * DAY;
  return resolution === 'weekly' ? yearAfter(start) : Number.POSITIVE_INFINITY;
}

/** The date a year after another; for a leap day, the last day of February. */
function yearAfter(start: number): number {
  const date = new Date(start);
  const next = date.setUTCFullYear(date.getUTCFullYear() + 1);
  return date.getUTCDate() === new Date(start).getUTCDate() ? next : next - DAY;
}

export function bucketOf(instant: number, resolution: Resolution): number {
  // Date.UTC is no use: it takes the years 0 to 99 for those of the twentieth century.
  if (resolution === 'monthly') return new Date(bucketOf(instant, 'daily')).setUTCDate(1);
  const origin = resolution === 'weekly' ? MONDAY : 0;
  return origin + Math.floor((instant - origin) / LENGTHS[resolution]) * LENGTHS[resolution];
}

/** The starts of all buckets that the window touches. */
export function bucketsOf(start: number, end: number, resolution: Resolution): number[] {
  const buckets: number[] = [];
  for (let bucket = bucketOf(start, resolution); bucket < end; ) {
    buckets.push(bucket);
    bucket = bucketOf(bucket + LENGTHS[resolution], resolution);
  }
  return buckets;
}
