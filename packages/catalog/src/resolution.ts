/**
 * Resolutions: their defaults by window length and the longest window each may be asked for.
 * Source: the API specification, section "Billing API", and DESIGN section 6 (caps are inclusive, defaults are not).
 */
import { utc } from '@date-fns/utc';
import { addYears } from 'date-fns/addYears';
import { type EpochMs, MS_PER_DAY } from './timestamp.js';
import type { Window } from './window.js';

export const RESOLUTIONS = ['hourly', 'daily', 'weekly', 'monthly'] as const;
export type Resolution = (typeof RESOLUTIONS)[number];

/** The latest endTime that a window from `startTime` may have, and how a person says it; null where there is none. */
interface WindowCap {
  readonly end: (startTime: EpochMs) => EpochMs;
  readonly text: string;
}

const CAPS = {
  hourly: { end: (startTime) => startTime + 7 * MS_PER_DAY, text: '7 days' },
  daily: { end: (startTime) => startTime + 90 * MS_PER_DAY, text: '90 days' },
  // A calendar year: 366 days from 2024-01-01. From 29 February it ends on 28 February.
  weekly: { end: (startTime) => addYears(startTime, 1, { in: utc }).getTime(), text: '1 year' },
  monthly: null,
} as const satisfies Record<Resolution, WindowCap | null>;

export function isResolution(value: string): value is Resolution {
  return (RESOLUTIONS as readonly string[]).includes(value);
}

/** The finest resolution whose cap the window stays below: exactly 7 days is daily, exactly 1 year is monthly. */
export function defaultResolution({ startTime, endTime }: Window): Resolution {
  return RESOLUTIONS.find((resolution) => endTime < (CAPS[resolution]?.end(startTime) ?? Infinity)) ?? 'monthly';
}

/** The cap that the window exceeds, as text ("7 days"), or undefined when the resolution may be used. */
export function exceededCap(resolution: Resolution, { startTime, endTime }: Window): string | undefined {
  const cap = CAPS[resolution];
  return cap && endTime > cap.end(startTime) ? cap.text : undefined;
}
