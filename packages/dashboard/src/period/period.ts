/** The periods that a view can show: presets and custom ranges, the period before each, and how they are written. All UTC. */
import { utc } from '@date-fns/utc';
import {
  bucketAxis,
  bucketStart,
  type EpochMs,
  MS_PER_DAY,
  MS_PER_HOUR,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import { addMonths, differenceInCalendarMonths } from 'date-fns';

const MINUTE_MS = 60_000;

/** All are whole UTC hours, days or months, and but for the last month all include the present one. */
export const PRESETS = [
  { id: '24h', label: 'Last 24 hours' },
  { id: '7d', label: 'Last 7 days' },
  { id: '30d', label: 'Last 30 days' },
  { id: '90d', label: 'Last 90 days' },
  { id: 'month', label: 'Month to date' },
  { id: 'last-month', label: 'Last month' },
  { id: '12m', label: 'Last 12 months' },
] as const;
export type PresetId = (typeof PRESETS)[number]['id'];

export type PeriodChoice = { readonly preset: PresetId } | { readonly from: EpochMs; readonly to: EpochMs };

export function isPresetId(text: string): text is PresetId {
  return PRESETS.some(({ id }) => id === text);
}

export function periodWindow(period: PeriodChoice, now: EpochMs): Window {
  return 'preset' in period ? presetWindow(period.preset, now) : { startTime: period.from, endTime: period.to };
}

export function presetWindow(preset: PresetId, now: EpochMs): Window {
  const tomorrow = bucketStart(now, 'daily') + MS_PER_DAY;
  const month = bucketStart(now, 'monthly');
  switch (preset) {
    case '24h': {
      const endTime = bucketStart(now, 'hourly') + MS_PER_HOUR;
      return { startTime: endTime - MS_PER_DAY, endTime };
    }
    case '7d':
      return { startTime: tomorrow - 7 * MS_PER_DAY, endTime: tomorrow };
    case '30d':
      return { startTime: tomorrow - 30 * MS_PER_DAY, endTime: tomorrow };
    case '90d':
      return { startTime: tomorrow - 90 * MS_PER_DAY, endTime: tomorrow };
    case 'month':
      return { startTime: month, endTime: tomorrow };
    case 'last-month':
      return { startTime: plusMonths(month, -1), endTime: month };
    case '12m':
      return { startTime: plusMonths(month, -11), endTime: plusMonths(month, 1) };
  }
}

export function plusMonths(instant: EpochMs, months: number): EpochMs {
  return addMonths(instant, months, { in: utc }).getTime();
}

/** The present, to the minute, so that a question asked twice within one minute is sent once. */
export function currentMinute(): EpochMs {
  const now = Date.now();
  return now - (now % MINUTE_MS);
}

const MONTHLY_PRESETS: ReadonlySet<PresetId> = new Set(['month', 'last-month', '12m']);

/**
 * The window that a window is compared with. Calendar months go back by months, any other window by its own length. A
 * window that has not ended yet is compared with an equally long part: twelve days with twelve days. Undefined before 1970
 * and for a window in the future.
 * @param byMonths the window is meant as calendar months, see {@link isByMonths}
 */
export function previousWindow(window: Window, byMonths: boolean, now: EpochMs): Window | undefined {
  const { startTime, endTime } = window;
  if (now <= startTime) return undefined;
  const previousStart = byMonths ? plusMonths(startTime, -monthsOf(window)) : startTime - (endTime - startTime);
  if (previousStart < 0) return undefined;
  const isOver = now >= endTime && (!byMonths || beginsMonth(endTime));
  const elapsed = Math.min(now, endTime) - startTime;
  // The month before may be shorter; it never overlaps the present one.
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

/** The part of a bucket that lies in the window. */
export function bucketWindow(bucket: EpochMs, resolution: Resolution, window: Window): Window {
  const [, next = window.endTime] = bucketAxis({ startTime: bucket, endTime: bucket + 32 * MS_PER_DAY }, resolution);
  return { startTime: Math.max(bucket, window.startTime), endTime: Math.min(next, window.endTime) };
}

const formatter = (options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' });

const DAY = formatter({ day: 'numeric', month: 'short' });
const DAY_OF_YEAR = formatter({ day: 'numeric', month: 'short', year: 'numeric' });
const WEEKDAY = formatter({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' });
const MONTH = formatter({ month: 'short', year: 'numeric' });
const LONG_MONTH = formatter({ month: 'long', year: 'numeric' });
const TIME = formatter({ hour: '2-digit', minute: '2-digit' });

export const monthText = (instant: EpochMs) => LONG_MONTH.format(instant);
export const timeText = (instant: EpochMs) => TIME.format(instant);

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
  if (!('preset' in period)) return windowText({ startTime: period.from, endTime: period.to });
  return PRESETS.find(({ id }) => id === period.preset)?.label ?? period.preset;
}

/** `2026-11-21`, for a date input. */
export function dateInputText(instant: EpochMs): string {
  return new Date(instant).toISOString().slice(0, 10);
}
