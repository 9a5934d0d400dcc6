/** The window of a question, as people say it: a month, the last days, or from and to. */
import {
  defaultResolution,
  type EpochMs,
  formatTimestamp,
  lastUnits,
  parseTimestamp,
  plusMonths,
  type Resolution,
  START_OF_CALENDAR,
  upTo,
  type Window,
  wholeMonths,
} from '@meterline/catalog/questions';
import type { WindowQuery } from '@meterline/client';
import { usageError } from '../command.js';
import { type Command, InvalidArgumentError, Option } from '../commander.js';

export interface WindowFlags {
  readonly since?: Span;
  readonly month?: Window;
  readonly from?: EpochMs;
  readonly to?: EpochMs;
}

/** So many hours or days, or milliseconds where the span is one of minutes. */
interface Span {
  readonly count: number;
  readonly unit: 'hourly' | 'daily' | 'exact';
}

const MS_PER_MINUTE = 60_000;
const SECOND_MS = 1_000;
const SPAN = /^([1-9]\d{0,5})([mhdw])$/;
const DATE = /^\d{4}-\d\d-\d\d$/;
const MONTH = /^\d{4}-\d\d$/;
const DEFAULT_SPAN: Span = { count: 30, unit: 'daily' };

export function withWindow(command: Command): Command {
  return command
    .addOption(
      new Option('--month <month>', 'a calendar month, such as 2026-11; one that is not over: up to now')
        .argParser(monthOf)
        .conflicts(['since', 'from', 'to']),
    )
    .addOption(
      new Option(
        '--since <span>',
        'the last 24h, 30d or 12w: whole hours or days, with the present one, as on the page; 90m: exactly (default: 30d)',
      )
        .argParser(spanOf)
        .conflicts('from'),
    )
    .option('--from <time>', 'from this time on: 2026-10-01, or 2026-10-01T12:00:00Z; always UTC', dayOrInstantOf)
    .option('--to <time>', 'up to, not including, this time (default: now)', dayOrInstantOf);
}

/** A window as it is meant, and the part of it that is asked for. */
export interface AskedWindow {
  /** The whole period: of the present month or day, also what is still to come. */
  readonly whole: Window;
  /** The calendar months that it is meant as; undefined for any other window. */
  readonly months: number | undefined;
  readonly query: WindowQuery;
  /** Of the whole period, so that a month has days from its first day on. */
  readonly resolution: Resolution;
  /** The present, to the second. */
  readonly asOf: EpochMs;
}

/** @throws CommandError when the flags contradict each other */
export function windowOf(flags: WindowFlags, now: Date): AskedWindow {
  // A whole second: milliseconds of the clock would only make the answer harder to read.
  const asOf = Math.floor(now.getTime() / SECOND_MS) * SECOND_MS;
  const { whole, isNamed } = wholeWindow(flags, asOf);
  if (whole.startTime >= whole.endTime)
    throw usageError(`--from must be before ${flags.to === undefined ? 'now' : '--to'}`);
  if (whole.startTime < START_OF_CALENDAR) throw usageError('the window begins before the year 0001');
  const { startTime, endTime } = isNamed ? whole : upTo(whole, asOf);
  return {
    whole,
    months: flags.since === undefined ? wholeMonths(whole) : undefined,
    query: { startTime: formatTimestamp(startTime), endTime: formatTimestamp(endTime) },
    resolution: defaultResolution(whole),
    asOf,
  };
}

/** @returns isNamed: both ends were given, or one and now; what is asked for is just that */
function wholeWindow({ since, month, from, to }: WindowFlags, asOf: EpochMs): { whole: Window; isNamed: boolean } {
  if (month) return { whole: month, isNamed: false };
  if (from !== undefined) return { whole: { startTime: from, endTime: to ?? asOf }, isNamed: true };
  const { count, unit } = since ?? DEFAULT_SPAN;
  if (unit === 'exact') {
    const endTime = to ?? asOf;
    return { whole: { startTime: endTime - count, endTime }, isNamed: true };
  }
  // Up to a time that was named, the last day is the one that ends there or holds it.
  if (to === undefined) return { whole: lastUnits(count, unit, asOf), isNamed: false };
  return { whole: { startTime: lastUnits(count, unit, to - 1).startTime, endTime: to }, isNamed: true };
}

/** @throws InvalidArgumentError */
function spanOf(text: string): Span {
  const [, digits, unit] = SPAN.exec(text) ?? [];
  const count = Number(digits);
  if (unit === 'm') return { count: count * MS_PER_MINUTE, unit: 'exact' };
  if (unit === 'h') return { count, unit: 'hourly' };
  if (unit === 'd') return { count, unit: 'daily' };
  if (unit === 'w') return { count: 7 * count, unit: 'daily' };
  throw new InvalidArgumentError('It must be a number of minutes, hours, days or weeks: 90m, 24h, 30d, 12w.');
}

/** @throws InvalidArgumentError */
export function monthOf(text: string): Window {
  const startTime = MONTH.test(text) ? parseTimestamp(`${text}-01T00:00:00Z`) : undefined;
  if (startTime !== undefined && startTime >= START_OF_CALENDAR) {
    return { startTime, endTime: plusMonths(startTime, 1) };
  }
  throw new InvalidArgumentError('It must be a month of the years 0001 to 9999, such as 2026-11.');
}

/** @throws InvalidArgumentError */
function dayOrInstantOf(text: string): EpochMs {
  const instant = parseTimestamp(DATE.test(text) ? `${text}T00:00:00Z` : text);
  if (instant !== undefined && instant >= START_OF_CALENDAR) return instant;
  throw new InvalidArgumentError(
    'It must be a UTC date or time of the years 0001 to 9999: 2026-10-01, 2026-10-01T12:00:00Z.',
  );
}
