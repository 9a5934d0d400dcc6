/** The window of a question, as people say it. */
import {
  END_OF_TIME,
  type EpochMs,
  formatTimestamp,
  MS_PER_DAY,
  MS_PER_HOUR,
  parseTimestamp,
} from '@meterline/catalog';
import type { WindowQuery } from '@meterline/client';
import { type Command, InvalidArgumentError } from 'commander';
import { usageError } from '../command-error.js';

export interface WindowFlags {
  readonly since?: EpochMs;
  readonly from?: EpochMs;
  readonly to?: EpochMs;
}

const MS_PER_MINUTE = 60_000;
const UNIT_MS = { m: MS_PER_MINUTE, h: MS_PER_HOUR, d: MS_PER_DAY, w: 7 * MS_PER_DAY };
const SPAN = /^([1-9]\d{0,5})([mhdw])$/;
const DATE = /^\d{4}-\d\d-\d\d$/;
const DEFAULT_SPAN_MS = 30 * MS_PER_DAY;

export function withWindow(command: Command): Command {
  return command
    .option('--since <span>', 'the time up to now, or up to --to: 90m, 24h, 30d, 12w (default: 30d)', spanOf)
    .option('--from <time>', 'from this time on: 2026-10-01, or 2026-10-01T12:00:00Z; always UTC', instantOf)
    .option('--to <time>', 'up to, not including, this time (default: now)', instantOf);
}

/** @throws CommandError when the flags contradict each other */
export function windowOf({ since, from, to }: WindowFlags, now: Date): WindowQuery {
  if (since !== undefined && from !== undefined) throw usageError('give --since or --from, not both');
  // A whole second: milliseconds of the clock would only make the answer harder to read.
  const end = to ?? Math.floor(now.getTime() / 1000) * 1000;
  const start = from ?? end - (since ?? DEFAULT_SPAN_MS);
  if (start >= end) throw usageError(`--from must be before ${to === undefined ? 'now' : '--to'}`);
  if (start < 0) throw usageError('the window begins before 1970');
  return { startTime: formatTimestamp(start), endTime: formatTimestamp(end) };
}

/** Milliseconds. @throws InvalidArgumentError */
function spanOf(text: string): EpochMs {
  const [, count, unit] = SPAN.exec(text) ?? [];
  if (unit === 'm' || unit === 'h' || unit === 'd' || unit === 'w') return Number(count) * UNIT_MS[unit];
  throw new InvalidArgumentError('It must be a number of minutes, hours, days or weeks: 90m, 24h, 30d, 12w.');
}

/** @throws InvalidArgumentError */
function instantOf(text: string): EpochMs {
  const instant = parseTimestamp(DATE.test(text) ? `${text}T00:00:00Z` : text);
  if (instant !== undefined && instant >= 0 && instant <= END_OF_TIME) return instant;
  throw new InvalidArgumentError(
    'It must be a UTC date or time from 1970 through 2100: 2026-10-01, 2026-10-01T12:00:00Z.',
  );
}
