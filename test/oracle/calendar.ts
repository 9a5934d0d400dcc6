/** Instants, windows and buckets for the oracle, with nothing but the language's own UTC calendar. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

export type Resolution = 'hourly' | 'daily' | 'weekly' | 'monthly';

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
  return instant - (instant % HOUR);
}

/** The spec's default by length of window; a year is a calendar year from the start (DESIGN section 6). */
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

/** The same date a year later; for a leap day, the last day of February. */
function yearAfter(start: number): number {
  const date = new Date(start);
  const isLeapDay = date.getUTCMonth() === 1 && date.getUTCDate() === 29;
  return new Date(start).setUTCFullYear(
    date.getUTCFullYear() + 1,
    date.getUTCMonth(),
    isLeapDay ? 28 : date.getUTCDate(),
  );
}

export function bucketOf(instant: number, resolution: Resolution): number {
  const date = new Date(instant);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (resolution === 'hourly') return midnight(year, month, day) + date.getUTCHours() * HOUR;
  if (resolution === 'daily') return midnight(year, month, day);
  if (resolution === 'monthly') return midnight(year, month, 1);
  // Sunday is day 0 of a Date and the last day of an ISO week.
  const sinceMonday = (date.getUTCDay() + 6) % 7;
  return midnight(year, month, day - sinceMonday);
}

/** As Date.UTC, which takes the years 0 to 99 for those of the twentieth century. */
function midnight(year: number, month: number, day: number): number {
  return new Date(0).setUTCFullYear(year, month, day);
}

/** The starts of all buckets that the window touches. */
export function bucketsOf(start: number, end: number, resolution: Resolution): number[] {
  const buckets: number[] = [];
  for (let bucket = bucketOf(start, resolution); bucket < end; bucket = bucketAfter(bucket, resolution)) {
    buckets.push(bucket);
  }
  return buckets;
}

function bucketAfter(bucket: number, resolution: Resolution): number {
  const date = new Date(bucket);
  if (resolution === 'monthly') return midnight(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  return bucket + { hourly: HOUR, daily: DAY, weekly: 7 * DAY }[resolution];
}
