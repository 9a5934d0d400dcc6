/** Windows that people ask for by name. All are whole UTC hours, days or months, and hold the present one. */
import { utc } from '@date-fns/utc';
import { bucketStart, type EpochMs, MS_PER_DAY, MS_PER_HOUR, type Window } from '@meterline/catalog';
import { addMonths } from 'date-fns';

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

export function isPresetId(text: string): text is PresetId {
  return PRESETS.some(({ id }) => id === text);
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
