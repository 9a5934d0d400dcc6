/**
 * The calendar axis of an answer. Buckets are UTC hours, days, ISO weeks (from Monday) and months.
 * date-fns counts in local time by itself; its UTC companion makes the axis the same under any TZ. Each function is
 * imported by itself: the whole of date-fns is 250 files, and takes Node longer to load than everything else here.
 */
import { utc } from '@date-fns/utc';
import { addDays } from 'date-fns/addDays';
import { addHours } from 'date-fns/addHours';
import { addMonths } from 'date-fns/addMonths';
import { addWeeks } from 'date-fns/addWeeks';
import { startOfDay } from 'date-fns/startOfDay';
import { startOfHour } from 'date-fns/startOfHour';
import { startOfISOWeek } from 'date-fns/startOfISOWeek';
import { startOfMonth } from 'date-fns/startOfMonth';
import type { Resolution } from './resolution.js';
import type { EpochMs } from './timestamp.js';
import type { Window } from './window.js';

interface Calendar {
  readonly start: (instant: EpochMs) => Date;
  readonly plus: (start: Date, count: number) => Date;
}

const UTC = { in: utc };

const CALENDARS = {
  hourly: { start: (instant) => startOfHour(instant, UTC), plus: (start, n) => addHours(start, n, UTC) },
  daily: { start: (instant) => startOfDay(instant, UTC), plus: (start, n) => addDays(start, n, UTC) },
  weekly: { start: (instant) => startOfISOWeek(instant, UTC), plus: (start, n) => addWeeks(start, n, UTC) },
  monthly: { start: (instant) => startOfMonth(instant, UTC), plus: (start, n) => addMonths(start, n, UTC) },
} as const satisfies Record<Resolution, Calendar>;

/** The calendar start of the bucket that holds the instant; it may lie before a window's startTime. */
export function bucketStart(instant: EpochMs, resolution: Resolution): EpochMs {
  return CALENDARS[resolution].start(instant).getTime();
}

/** The starts of all buckets that the window touches, ascending, past and future alike. Never empty for a real window. */
export function bucketAxis({ startTime, endTime }: Window, resolution: Resolution): EpochMs[] {
  const { start, plus } = CALENDARS[resolution];
  const first = start(startTime);
  const axis: EpochMs[] = [];
  for (let bucket = first; bucket.getTime() < endTime; bucket = plus(first, axis.length)) axis.push(bucket.getTime());
  return axis;
}
