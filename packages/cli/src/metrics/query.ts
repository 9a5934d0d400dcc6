/** The flags of a question, as people say it, and the question they make. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  canonicalGroupBy,
  END_OF_TIME,
  type EpochMs,
  formatTimestamp,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  isGroupByDimension,
  MAX_GROUP_BY_DIMENSIONS,
  MS_PER_DAY,
  MS_PER_HOUR,
  parseTimestamp,
  RESOLUTIONS,
  RESOURCE_TYPES,
  type Resolution,
  type ResourceType,
} from '@meterline/catalog';
import type { MetricsQuery, WindowQuery } from '@meterline/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { usageError } from '../command.js';
import { nameOf, wholeNumber } from '../flags.js';

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
    .option('--from <time>', 'from this time on: 2026-10-01, or 2026-10-01T12:00:00Z; always UTC', dayOrInstantOf)
    .option('--to <time>', 'up to, not including, this time (default: now)', dayOrInstantOf);
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
function dayOrInstantOf(text: string): EpochMs {
  const instant = parseTimestamp(DATE.test(text) ? `${text}T00:00:00Z` : text);
  if (instant !== undefined && instant >= 0 && instant <= END_OF_TIME) return instant;
  throw new InvalidArgumentError(
    'It must be a UTC date or time from 1970 through 2100: 2026-10-01, 2026-10-01T12:00:00Z.',
  );
}

export interface QueryFlags extends WindowFlags {
  readonly resolution?: Resolution;
  readonly groupBy?: readonly GroupByDimension[];
  readonly workspace?: string;
  readonly resourceType?: ResourceType;
  readonly resourceName?: string;
  readonly resourceUuid?: string;
  readonly billingDimension?: BillingDimension;
  readonly limit?: number;
  readonly cursor?: string;
}

const MAX_LIMIT = 100;

export function withQuery(command: Command): Command {
  return withWindow(command)
    .addOption(
      new Option('--resolution <resolution>', 'length of a bucket (default: by the window)').choices(RESOLUTIONS),
    )
    .option(
      '--group-by <dimensions>',
      `up to ${MAX_GROUP_BY_DIMENSIONS} of ${GROUP_BY_DIMENSIONS.join(', ')}, with commas between`,
      groupByOf,
    )
    .option('--workspace <name>', 'only this workspace; admins only', nameOf)
    .addOption(new Option('--resource-type <type>', 'only this type').choices(RESOURCE_TYPES))
    .option('--resource-name <name>', 'only this resource', nameOf)
    .option('--resource-uuid <uuid>', 'only this instance; "" for what has none')
    .addOption(new Option('--billing-dimension <dimension>', 'only this dimension').choices(BILLING_DIMENSIONS))
    .option('--limit <n>', `groups on a page, at most ${MAX_LIMIT}`, (text) => wholeNumber(text, 1, MAX_LIMIT))
    .option('--cursor <cursor>', 'the page of this cursor, which is meta.nextCursor of another answer');
}

/** @throws CommandError when the flags contradict each other */
export function queryOf(flags: QueryFlags, now: Date): MetricsQuery {
  const { resolution, groupBy, workspace, resourceType, resourceName, resourceUuid, billingDimension, limit, cursor } =
    flags;
  return {
    ...windowOf(flags, now),
    resolution,
    groupBy,
    workspace,
    resourceType,
    resourceName,
    resourceUuid,
    billingDimension,
    limit,
    cursor,
  };
}

/** @throws InvalidArgumentError */
function groupByOf(text: string): GroupByDimension[] {
  const names = text.split(',').map((name) => name.trim());
  const known = names.filter(isGroupByDimension);
  if (
    known.length === names.length &&
    new Set(names).size === names.length &&
    names.length <= MAX_GROUP_BY_DIMENSIONS
  ) {
    return canonicalGroupBy(known);
  }
  throw new InvalidArgumentError(
    `It must be up to ${MAX_GROUP_BY_DIMENSIONS} different ones of ${GROUP_BY_DIMENSIONS.join(', ')}.`,
  );
}
