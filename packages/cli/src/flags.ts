/** Defines the flags that several commands share, and parses names, numbers and times. All times are UTC. */
import {
  END_OF_TIME,
  type EpochMs,
  formatTimestamp,
  lastUnits,
  nameText,
  parseTimestamp,
  plusMonths,
  type Window,
} from '@meterline/catalog';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import { usageError } from './failure.js';

export interface OutputFlags {
  readonly output?: 'table' | 'json' | 'csv';
  readonly json?: boolean;
  readonly csv?: 'excel' | true;
}

export function withOutput(command: Command, json = 'Print JSON'): Command {
  return command
    .addOption(
      new Option('--output <format>', 'Output format (default: table)')
        .choices(['table', 'json', 'csv'])
        .conflicts(['json', 'csv']),
    )
    .addOption(new Option('--json', json).conflicts('csv'))
    .addOption(
      new Option(
        '--csv [variant]',
        'Print CSV; --csv=excel adds a byte order mark and escapes names that look like formulas',
      ).choices(['excel']),
    );
}

export function formOf({ output = 'table', json, csv }: OutputFlags): 'table' | 'json' | 'csv' | 'excel' {
  if (csv) return csv === 'excel' ? csv : 'csv';
  return json ? 'json' : output;
}

export function withApiFlags(
  command: Command,
  account = 'Account ID (default: $METERLINE_ACCOUNT, or the account of the login or key)',
): Command {
  return withApiUrl(command.option('--account <account>', account, nameOf));
}

export function withProfile(command: Command): Command {
  return command.option(
    '--profile <name>',
    'Saved login to use (default: $METERLINE_PROFILE if set, otherwise the default login)',
  );
}

export function withApiUrl(command: Command): Command {
  return withProfile(command)
    .option(
      '--api-url <url>',
      `API address (default: $METERLINE_API_URL, the address of "meterline login", or the local stack)`,
    )
    .option('--debug', 'Print each request with its duration and request ID to standard error');
}

export function withRedisUrl(command: Command): Command {
  return command.option(
    '--redis-url <url>',
    `Redis address (default: $REDIS_URL, then the local stack's, then redis://127.0.0.1:6379)`,
  );
}

/** Adds the flags of commands that use the queue. Other commands only need the address of Redis. */
export function withRedisFlags(command: Command): Command {
  return withRedisUrl(command).option(
    '--queue-prefix <prefix>',
    'Key prefix of the queue (default: $QUEUE_PREFIX, or bull)',
  );
}

export function withClickHouseFlags(command: Command): Command {
  return command
    .option(
      '--clickhouse-url <url>',
      `ClickHouse address (default: $CLICKHOUSE_URL, then the local stack's, then http://127.0.0.1:8123)`,
    )
    .option(
      '--clickhouse-user <name>',
      `ClickHouse user (default: $CLICKHOUSE_USER, then the local stack's, then "default")`,
    )
    .option(
      '--clickhouse-password <password>',
      "ClickHouse password. Other users of this machine can see it, so prefer the variable (default: $CLICKHOUSE_PASSWORD, then the local stack's)",
    )
    .option(
      '--clickhouse-database <name>',
      `ClickHouse database (default: $CLICKHOUSE_DATABASE, then the local stack's, then "meterline")`,
    );
}

/** Parses a value. Messages of the schema start with "must". @throws InvalidArgumentError, which commander turns into a usage error */
export function parsedBy<Value>(schema: z.ZodType<Value>, text: string): Value {
  const parsed = schema.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError(`It ${parsed.error.issues.map(({ message }) => message).join('; ')}.`);
}

/** Parses the name of an account or client. Rejects file names, because users may expect the command to read names from the file. */
export function nameOf(text: string): string {
  if (/^@|\.(txt|csv|jsonl?)$/i.test(text)) throw new InvalidArgumentError('It looks like a file. Give one name.');
  return parsedBy(nameText, text);
}

/** Returns the flag for a field of the API, such as `--billing-dimension`. */
export function flagName(field: string): string {
  return `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

export function wholeNumber(text: string, min: number, max: number): number {
  const value = Number(text);
  if (!/^-?\d+$/.test(text) || value < min || value > max) {
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  }
  return value;
}

/** A time span: a number of whole hours or days, or an exact number of milliseconds. */
export interface Span {
  readonly count: number;
  readonly unit: 'hourly' | 'daily' | 'exact';
}

const MS_PER_MINUTE = 60_000;
const SPAN = /^([1-9]\d{0,5})([mhdw])$/;
const DATE = /^\d{4}-\d\d-\d\d$/;
const MONTH = /^\d{4}-\d\d$/;

export const SPANS = '24h, 30d or 12w, in whole hours or days including the current one; minutes (90m) are not rounded';

export function spanOf(text: string): Span {
  const [, digits, unit] = SPAN.exec(text) ?? [];
  const count = Number(digits);
  if (unit === 'm') return { count: count * MS_PER_MINUTE, unit: 'exact' };
  if (unit === 'h') return { count, unit: 'hourly' };
  if (unit === 'd') return { count, unit: 'daily' };
  if (unit === 'w') return { count: 7 * count, unit: 'daily' };
  throw new InvalidArgumentError('It must be a number of minutes, hours, days or weeks: 90m, 24h, 30d, 12w.');
}

/** Returns the window of a span. An exact span ends now. A span of whole hours or days ends with the current hour or day. */
export function lastSpan({ count, unit }: Span, now: EpochMs): Window {
  return unit === 'exact' ? { startTime: now - count, endTime: now } : lastUnits(count, unit, now);
}

export function monthOf(text: string): Window {
  const startTime = MONTH.test(text) ? parseTimestamp(`${text}-01T00:00:00Z`) : undefined;
  if (startTime !== undefined && startTime >= 0 && startTime < END_OF_TIME) {
    return { startTime, endTime: plusMonths(startTime, 1) };
  }
  throw new InvalidArgumentError('It must be a month from 1970-01 to 2100-12, such as 2026-11.');
}

/** @throws CommandError if the month is in the future */
export function requireStarted({ startTime }: Pick<Window, 'startTime'>, now: Date): void {
  if (startTime > now.getTime())
    throw usageError(`${monthText(startTime)} has not started yet; choose an earlier month`);
}

export function monthText(month: EpochMs): string {
  return formatTimestamp(month).slice(0, 'YYYY-MM'.length);
}

/** Parses a time. A day without a time means its first instant. */
export function timeOf(text: string): EpochMs {
  const instant = parseTimestamp(DATE.test(text) ? `${text}T00:00:00Z` : text);
  if (instant !== undefined && instant >= 0 && instant <= END_OF_TIME) return instant;
  throw new InvalidArgumentError(
    'It must be a UTC day or time from 1970 through 2100: 2026-10-01, 2026-10-01T12:00:00Z.',
  );
}
