/** The window that a window is compared with: the one before it, as far as the present one has come. */
import { utc } from '@date-fns/utc';
import { bucketStart, type EpochMs, type Window } from '@meterline/catalog';
import { differenceInCalendarMonths } from 'date-fns';
import { plusMonths } from './preset.js';

/**
 * A window from the first of a month goes back by whole months, any other by its own length. If it has not ended yet, the
 * one before ends after the same time, so that twelve days are compared with twelve days. Undefined before 1970.
 */
export function previousWindow(window: Window, now: EpochMs): Window | undefined {
  const { startTime, endTime } = window;
  if (now <= startTime) return undefined;
  const previousStart = startOfPrevious(window);
  if (previousStart < 0) return undefined;
  // A shorter month before does not reach into the present one.
  const previousEnd = now >= endTime ? endOfPrevious(window, previousStart) : previousStart + (now - startTime);
  return { startTime: previousStart, endTime: Math.min(previousEnd, startTime) };
}

function startOfPrevious(window: Window): EpochMs {
  const { startTime, endTime } = window;
  return beginsMonth(startTime) && endsWithMonth(window)
    ? plusMonths(startTime, -monthsOf(window))
    : startTime - (endTime - startTime);
}

function endOfPrevious({ startTime, endTime }: Window, previousStart: EpochMs): EpochMs {
  return beginsMonth(endTime) ? startTime : previousStart + (endTime - startTime);
}

/** Whole months, or one month that has not ended. */
function endsWithMonth(window: Window): boolean {
  return beginsMonth(window.endTime) || monthsOf(window) === 1;
}

function monthsOf({ startTime, endTime }: Window): number {
  return differenceInCalendarMonths(endTime - 1, startTime, { in: utc }) + 1;
}

function beginsMonth(instant: EpochMs): boolean {
  return bucketStart(instant, 'monthly') === instant;
}
