/** RFC 3339 timestamps in UTC, kept to the millisecond. */

const RFC_3339_UTC = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)$/i;

/** An instant: milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = number;

export const MS_PER_HOUR = 3_600_000;
export const MS_PER_DAY = 86_400_000;

/**
 * Parses an RFC 3339 timestamp whose offset is `Z` or `+00:00`, with 0–9 fraction digits; digits past the
 * millisecond are cut off. Gives undefined for anything else: another offset, a day that does not exist, a leap second.
 */
export function parseTimestamp(text: string): EpochMs | undefined {
  const match = RFC_3339_UTC.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second, fraction = ''] = match;
  const date = new Date(0);
  // setUTCFullYear, unlike Date.UTC, does not move the years 0–99 to 1900–1999.
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const milliseconds = Number(fraction.slice(0, 3).padEnd(3, '0'));
  return date.setUTCHours(Number(hour), Number(minute), Number(second), milliseconds);
}

/** `2025-10-01T00:00:00Z`; a fraction only if it is not zero, and then without trailing zeros. */
export function formatTimestamp(instant: EpochMs): string {
  const [seconds, fraction = ''] = new Date(instant).toISOString().slice(0, -1).split('.');
  const digits = fraction.replace(/0+$/, '');
  return digits === '' ? `${seconds}Z` : `${seconds}.${digits}Z`;
}
