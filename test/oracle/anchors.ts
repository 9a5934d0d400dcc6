/** Anchors: moments around which the events of a history lie: edges of calendars, of years and of the supported time. */
import fc from 'fast-check';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

export const ANCHORS = [
  '1970-01-01T00:00:00Z', // the first instant, a Thursday: its week begins before 1970
  '2000-02-29T00:00:00Z', // a leap day in a year divisible by 100
  '2020-12-28T00:00:00Z', // Monday of week 53
  '2021-01-04T00:00:00Z', // Monday of week 1, after three January days of week 53
  '2024-02-29T12:00:00Z', // noon of a leap day
  '2024-03-01T00:00:00Z',
  '2024-12-30T00:00:00Z', // Monday of week 1 of the next year
  '2025-01-01T00:00:00Z',
  '2025-03-09T07:00:00Z', // New York leaves standard time
  '2025-11-02T06:00:00Z', // and returns to it
  '2025-12-31T23:00:00Z', // the last hour of a year
].map((text) => Date.parse(text));

export const anchor = fc.constantFrom(...ANCHORS);

/** Milliseconds from an anchor to an event or an end of a window; mostly at an edge or next to it. */
export const distance = fc
  .record({
    days: fc.oneof(
      { weight: 20, arbitrary: fc.constant(0) },
      { weight: 6, arbitrary: fc.constantFrom(-1, 1, -3, 4, 7) },
      { weight: 1, arbitrary: fc.constantFrom(-366, -90, -31, 31, 90, 365, 366) },
    ),
    hours: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.integer({ min: -24, max: 24 }) },
    ),
    milliseconds: fc.oneof(
      { weight: 2, arbitrary: fc.constantFrom(0, -1, 1) },
      { weight: 1, arbitrary: fc.constantFrom(30 * 60 * SECOND, 30 * 60 * SECOND + 500, HOUR - 1) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: HOUR - 1 }) },
    ),
  })
  .map(({ days, hours, milliseconds }) => days * DAY + hours * HOUR + milliseconds);

/** Ways to write the same millisecond. */
export const spelling = fc.constantFrom('Z', '+00:00', 'nanoseconds', 'short');
export type Spelling = 'Z' | '+00:00' | 'nanoseconds' | 'short';

export function spell(instant: number, spelling: Spelling): string {
  const text = new Date(instant).toISOString();
  if (spelling === 'nanoseconds') return text.replace('Z', '999999Z');
  if (spelling === 'short') return text.replace('.000Z', 'Z');
  return text.replace('Z', spelling);
}
