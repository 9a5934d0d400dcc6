/** Times as people say them at a terminal, the same in every command: a span, a month, a day, an instant. All UTC. */
import {
  END_OF_TIME,
  type EpochMs,
  formatTimestamp,
  lastUnits,
  parseTimestamp,
  plusMonths,
  type Window,
} from '@meterline/catalog/plain';
import { InvalidArgumentError } from 'commander';

/** So many hours or days, or milliseconds where the span is one of minutes. */
export interface Span {
  readonly count: number;
  readonly unit: 'hourly' | 'daily' | 'exact';
}

const MS_PER_MINUTE = 60_000;
const SPAN = /^([1-9]\d{0,5})([mhdw])$/;
const DATE = /^\d{4}-\d\d-\d\d$/;
const MONTH = /^\d{4}-\d\d$/;

/** For --help. */
export const SPANS = '24h, 30d or 12w: whole hours or days, with the present one, as on the page; 90m: exactly';

/** @throws InvalidArgumentError, which commander turns into a usage error that names the flag */
export function spanOf(text: string): Span {
  const [, digits, unit] = SPAN.exec(text) ?? [];
  const count = Number(digits);
  if (unit === 'm') return { count: count * MS_PER_MINUTE, unit: 'exact' };
  if (unit === 'h') return { count, unit: 'hourly' };
  if (unit === 'd') return { count, unit: 'daily' };
  if (unit === 'w') return { count: 7 * count, unit: 'daily' };
  throw new InvalidArgumentError('It must be a number of minutes, hours, days or weeks: 90m, 24h, 30d, 12w.');
}

/** The window that ends now, or with the present hour or day. */
export function lastSpan({ count, unit }: Span, now: EpochMs): Window {
  return unit === 'exact' ? { startTime: now - count, endTime: now } : lastUnits(count, unit, now);
}

/** @throws InvalidArgumentError */
export function monthOf(text: string): Window {
  const startTime = MONTH.test(text) ? parseTimestamp(`${text}-01T00:00:00Z`) : undefined;
  if (startTime !== undefined && startTime >= 0 && startTime < END_OF_TIME) {
    return { startTime, endTime: plusMonths(startTime, 1) };
  }
  throw new InvalidArgumentError('It must be a month from 1970-01 to 2100-12, such as 2026-11.');
}

/** 2025-01. */
export function monthText(month: EpochMs): string {
  return formatTimestamp(month).slice(0, 'YYYY-MM'.length);
}

/** A day is its first instant. @throws InvalidArgumentError */
export function timeOf(text: string): EpochMs {
  const instant = parseTimestamp(DATE.test(text) ? `${text}T00:00:00Z` : text);
  if (instant !== undefined && instant >= 0 && instant <= END_OF_TIME) return instant;
  throw new InvalidArgumentError(
    'It must be a UTC day or time from 1970 through 2100: 2026-10-01, 2026-10-01T12:00:00Z.',
  );
}
