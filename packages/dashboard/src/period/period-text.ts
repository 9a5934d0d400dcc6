/** Instants as people read them. All are UTC, whatever the reader's own zone is. */
import { bucketAxis, type EpochMs, MS_PER_DAY, MS_PER_HOUR, type Resolution, type Window } from '@meterline/catalog';
import type { PeriodChoice } from '../view/view.js';
import { PRESETS } from './preset.js';

const formatter = (options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' });

const DAY = formatter({ day: 'numeric', month: 'short' });
const DAY_OF_YEAR = formatter({ day: 'numeric', month: 'short', year: 'numeric' });
const WEEKDAY = formatter({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' });
const MONTH = formatter({ month: 'short', year: 'numeric' });
const LONG_MONTH = formatter({ month: 'long', year: 'numeric' });
const TIME = formatter({ hour: '2-digit', minute: '2-digit' });

export const dayText = (instant: EpochMs) => DAY_OF_YEAR.format(instant);
export const monthText = (instant: EpochMs) => LONG_MONTH.format(instant);
export const timeText = (instant: EpochMs) => TIME.format(instant);

/** For the axis of a chart: short, for there are many. */
export function tickText(bucket: EpochMs, resolution: Resolution): string {
  if (resolution === 'monthly') return MONTH.format(bucket);
  if (resolution === 'hourly') return bucket % MS_PER_DAY === 0 ? DAY.format(bucket) : TIME.format(bucket);
  return DAY.format(bucket);
}

/** A bucket by its full name. */
export function bucketText(bucket: EpochMs, resolution: Resolution): string {
  switch (resolution) {
    case 'hourly':
      return `${WEEKDAY.format(bucket)}, ${TIME.format(bucket)}–${TIME.format(bucket + MS_PER_HOUR)}`;
    case 'daily':
      return WEEKDAY.format(bucket);
    case 'weekly':
      return `Week of ${DAY_OF_YEAR.format(bucket)}`;
    case 'monthly':
      return LONG_MONTH.format(bucket);
  }
}

/**
 * `1 Nov – 21 Nov 2026`, both days inside; with the times that are not midnight.
 * @param known whose year goes without saying
 */
export function windowText({ startTime, endTime }: Window, known?: EpochMs): string {
  // The end of a day is said by the day.
  const last = endTime % MS_PER_DAY === 0 ? endTime - MS_PER_DAY : endTime;
  const times = {
    from: startTime % MS_PER_DAY === 0 ? '' : ` ${TIME.format(startTime)}`,
    to: endTime % MS_PER_DAY === 0 ? '' : ` ${TIME.format(endTime)}`,
  };
  if (last === startTime) return DAY_OF_YEAR.format(startTime);
  const from = yearNumber(startTime) === yearNumber(last) ? DAY : DAY_OF_YEAR;
  const to = known !== undefined && yearNumber(last) === yearNumber(known) ? DAY : DAY_OF_YEAR;
  return `${from.format(startTime)}${times.from} – ${to.format(last)}${times.to}`;
}

function yearNumber(instant: EpochMs): number {
  return new Date(instant).getUTCFullYear();
}

export function periodText(period: PeriodChoice): string {
  if (!('preset' in period)) return windowText({ startTime: period.from, endTime: period.to });
  return PRESETS.find(({ id }) => id === period.preset)?.label ?? period.preset;
}

/** The part of a bucket that lies in the window. */
export function bucketWindow(bucket: EpochMs, resolution: Resolution, window: Window): Window {
  const [, next = window.endTime] = bucketAxis({ startTime: bucket, endTime: bucket + 32 * MS_PER_DAY }, resolution);
  return { startTime: Math.max(bucket, window.startTime), endTime: Math.min(next, window.endTime) };
}

/** `2026-11-21`, as a date input has it. */
export function dateInputText(instant: EpochMs): string {
  return new Date(instant).toISOString().slice(0, 10);
}
