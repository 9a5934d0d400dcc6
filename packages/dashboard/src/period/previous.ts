/** The window that a window is compared with: the one before it, as far as the present one has come. */
import { utc } from '@date-fns/utc';
import { bucketStart, type EpochMs, type Window } from '@meterline/catalog';
import { differenceInCalendarMonths } from 'date-fns';
import type { PeriodChoice } from '../view/view.js';
import { type PresetId, plusMonths } from './preset.js';

const MONTHLY_PRESETS: ReadonlySet<PresetId> = new Set(['month', 'last-month', '12m']);

/**
 * Calendar months go back by months, any other window by its own length. A window that has not ended yet is compared with
 * as much of the one before: twelve days with twelve days. Undefined before 1970, and for a window yet to come.
 * @param byMonths the window is meant as calendar months, see {@link isByMonths}
 */
export function previousWindow(window: Window, byMonths: boolean, now: EpochMs): Window | undefined {
  const { startTime, endTime } = window;
  if (now <= startTime) return undefined;
  const previousStart = byMonths ? plusMonths(startTime, -monthsOf(window)) : startTime - (endTime - startTime);
  if (previousStart < 0) return undefined;
  const isOver = now >= endTime && (!byMonths || beginsMonth(endTime));
  const elapsed = Math.min(now, endTime) - startTime;
  // A shorter month before does not reach into the present one.
  const previousEnd = isOver ? startTime : Math.min(previousStart + elapsed, startTime);
  return { startTime: previousStart, endTime: previousEnd };
}

/** Thirty days that happen to be a month are still thirty days; a custom range of whole months is months. */
export function isByMonths(period: PeriodChoice, { startTime, endTime }: Window): boolean {
  if ('preset' in period) return MONTHLY_PRESETS.has(period.preset);
  return beginsMonth(startTime) && beginsMonth(endTime);
}

function monthsOf({ startTime, endTime }: Window): number {
  return differenceInCalendarMonths(endTime - 1, startTime, { in: utc }) + 1;
}

function beginsMonth(instant: EpochMs): boolean {
  return bucketStart(instant, 'monthly') === instant;
}
