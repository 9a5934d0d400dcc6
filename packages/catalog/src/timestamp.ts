/** RFC 3339 timestamps in UTC, kept to the millisecond. */

/** An instant: milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = number;

export const MS_PER_HOUR = 3_600_000;
export const MS_PER_DAY = 86_400_000;
export const MS_PER_WEEK = 7 * MS_PER_DAY;
/** Exclusive: the first instant after the year 2100. The command line takes times from 1970 up to it. */
export const END_OF_TIME: EpochMs = /* @__PURE__ */ Date.UTC(2101, 0);
/** 0001-01-01: a window may begin there. RFC 3339 has a year before it, which calendars do not. */
export const START_OF_CALENDAR: EpochMs = -62_135_596_800_000;

/** With a fraction of up to nine digits. Source: RFC 3339, section 5.6. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00)$/i;

/**
 * Parses an RFC 3339 timestamp whose offset is `Z` or `+00:00`, with 0–9 fraction digits; digits past the
 * millisecond are cut off. Gives undefined for anything else: another offset, a day that does not exist, a leap second.
 */
export function parseTimestamp(text: string): EpochMs | undefined {
  if (!TIMESTAMP.test(text)) return undefined;
  const instant = Date.parse(text.toUpperCase());
  // Date.parse takes a day that the month does not have for one of the next month.
  return new Date(instant).getUTCDate() === Number(text.slice(8, 10)) ? instant : undefined;
}

/** `2025-10-01T00:00:00Z`; a fraction only if it is not zero, and then without trailing zeros. */
export function formatTimestamp(instant: EpochMs): string {
  return new Date(instant).toISOString().replace(/\.?0*Z$/, 'Z');
}

/**
 * What a `Retry-After` says: milliseconds from now; undefined without a usable value. Seconds or an HTTP date, which may have passed.
 * Source: RFC 9110, section 10.2.3.
 */
export function parseRetryAfter(value: string | null, now: Date): number | undefined {
  const text = value?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const date = /^[A-Z][a-z]+,? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime());
}
