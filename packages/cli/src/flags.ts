/** The flags that several commands share, and how values are read: names, numbers, and times as people say them, always UTC. */
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

export interface OutputFlags {
  readonly output?: 'table' | 'json' | 'csv';
  readonly json?: boolean;
  readonly csv?: 'excel' | true;
}

/** For commands that print a result. @param json what --json prints */
export function withOutput(command: Command, json = 'one JSON document'): Command {
  return command
    .addOption(
      new Option('--output <form>', 'form of the result (default: table)')
        .choices(['table', 'json', 'csv'])
        .conflicts(['json', 'csv']),
    )
    .addOption(new Option('--json', `--output json: ${json}`).conflicts('csv'))
    .addOption(
      new Option(
        '--csv [form]',
        '--output csv; excel: with a byte order mark, and an apostrophe before names that begin a formula',
      ).choices(['excel']),
    );
}

export function formOf({ output = 'table', json, csv }: OutputFlags): 'table' | 'json' | 'csv' | 'excel' {
  if (csv) return csv === 'excel' ? csv : 'csv';
  return json ? 'json' : output;
}

/** For commands that ask the API about an account. */
export function withApiFlags(command: Command): Command {
  return withApiUrl(
    command.option('--account <account>', 'the account; may be left out if the key has only one', nameOf),
  );
}

export function withProfile(command: Command): Command {
  return command.option(
    '--profile <name>',
    'the login of this name (default: $METERLINE_PROFILE, or the login without name)',
  );
}

export function withApiUrl(command: Command): Command {
  return withProfile(command)
    .option('--api-url <url>', 'the address of the API')
    .option('--debug', 'say on standard error what is asked: each request, its time and its id, for support');
}

export function withRedisUrl(command: Command): Command {
  return command.option('--redis-url <url>', 'Redis (else REDIS_URL, a running local stack, redis://127.0.0.1:6379)');
}

/** For commands that use the queue; the others need only the address. */
export function withRedisFlags(command: Command): Command {
  return withRedisUrl(command).option('--queue-prefix <prefix>', 'prefix of the queue (else QUEUE_PREFIX, bull)');
}

export function withClickHouseFlags(command: Command): Command {
  return command
    .option('--clickhouse-url <url>', 'ClickHouse (else CLICKHOUSE_URL, a running local stack, http://127.0.0.1:8123)')
    .option('--clickhouse-user <name>', 'user (else CLICKHOUSE_USER, default)')
    .option(
      '--clickhouse-password <text>',
      'password (else CLICKHOUSE_PASSWORD, none); better given in the environment',
    )
    .option('--clickhouse-database <name>', 'database (else CLICKHOUSE_DATABASE, a running local stack, meterline)');
}

/**
 * A value by a schema whose messages begin with "must".
 * @throws InvalidArgumentError, as all below: commander turns it into a usage error that names the flag
 */
export function parsedBy<Value>(schema: z.ZodType<Value>, text: string): Value {
  const parsed = schema.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError(`It ${parsed.error.issues.map(({ message }) => message).join('; ')}.`);
}

/** An account's or client's name. A file of names is not read: the command would run for a part of them, or for none. */
export function nameOf(text: string): string {
  if (/^@|\.(txt|csv|jsonl?)$/i.test(text)) throw new InvalidArgumentError('It looks like a file. Give one name.');
  return parsedBy(nameText, text);
}

export function wholeNumber(text: string, min: number, max: number): number {
  const value = Number(text);
  if (!/^-?\d+$/.test(text) || value < min || value > max) {
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  }
  return value;
}

/** A number of hours or days, or of milliseconds where the span is one of minutes. */
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

/** A day is its first instant. */
export function timeOf(text: string): EpochMs {
  const instant = parseTimestamp(DATE.test(text) ? `${text}T00:00:00Z` : text);
  if (instant !== undefined && instant >= 0 && instant <= END_OF_TIME) return instant;
  throw new InvalidArgumentError(
    'It must be a UTC day or time from 1970 through 2100: 2026-10-01, 2026-10-01T12:00:00Z.',
  );
}
