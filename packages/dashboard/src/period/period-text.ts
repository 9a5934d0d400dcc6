/** How instants, buckets, windows and periods are written. All UTC. */
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR, type Resolution, type Window } from '@meterline/catalog';
import { monthOf, type PeriodChoice, PRESETS } from './period.js';

const formatter = (options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' });

const DAY = formatter({ day: 'numeric', month: 'short' });
const DAY_OF_YEAR = formatter({ day: 'numeric', month: 'short', year: 'numeric' });
const WEEKDAY = formatter({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' });
const MONTH = formatter({ month: 'short', year: 'numeric' });
const LONG_MONTH = formatter({ month: 'long', year: 'numeric' });
const TIME = formatter({ hour: '2-digit', minute: '2-digit' });
const CLOCK = formatter({ hour: '2-digit', minute: '2-digit', second: '2-digit' });

export const monthText = (instant: EpochMs) => LONG_MONTH.format(instant);
/** `16:49:03`, for the instant that a screen is as of. */
export const clockText = (instant: EpochMs) => CLOCK.format(instant);

/** Short, for the axis of a chart. */
export function tickText(bucket: EpochMs, resolution: Resolution): string {
  if (resolution === 'monthly') return MONTH.format(bucket);
  if (resolution === 'hourly') return bucket % MS_PER_DAY === 0 ? DAY.format(bucket) : TIME.format(bucket);
  return DAY.format(bucket);
}

/** In full, for a tooltip or a table. */
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
 * `1 Nov – 21 Nov 2026`, both days included; times only where they are not midnight.
 * @param known an instant in the year that is left out
 */
export function windowText({ startTime, endTime }: Window, known?: EpochMs): string {
  // An end at midnight is written as the day before.
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
  if (!('preset' in period)) {
    const window = { startTime: period.from, endTime: period.to };
    const month = monthOf(window);
    return month === undefined ? windowText(window) : monthText(month);
  }
  return PRESETS.find(({ id }) => id === period.preset)?.label ?? period.preset;
}

/** `2026-11-21`, for a date input. */
export function dateInputText(instant: EpochMs): string {
  return new Date(instant).toISOString().slice(0, 10);
}
