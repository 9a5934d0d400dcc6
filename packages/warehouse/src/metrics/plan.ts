/** Plans which tables a metrics query reads for each part of its window, and with which conditions. Source: docs/decisions/0006. */

import { TupleParam } from '@clickhouse/client';
import {
  type EpochMs,
  METRICS_DIMENSIONS,
  type MetricsDimension,
  MS_PER_DAY,
  MS_PER_HOUR,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import { type Accounts, accountsCondition, accountsParameters } from '../accounts.js';
import type { Parameter, StatementParameters } from '../clickhouse/connection.js';
import { bucketOf, type Grain, nextBucket, type RollupKey } from '../rollups/rollup-rows.js';
import { dateTime } from '../rollups/sources.js';
import type { ReadableRollups } from '../rollups/watermarks.js';

/** A part of a window that is read from one table, with from <= time < to. `only` selects and `except` excludes hours or days of accounts. */
export interface Segment {
  readonly source: 'events' | Grain;
  readonly from: EpochMs;
  readonly to: EpochMs;
  readonly only?: readonly RollupKey[];
  readonly except?: readonly RollupKey[];
  /** Restricts the segment to the hours of these days. */
  readonly days?: readonly RollupKey[];
}

/**
 * Decides for each part of a window which table to read. Partial hours at the window's edges, unsealed hours (whose rollup rows are not
 * computed yet) and dirty hours (whose rows may lack events) are read from the events. Whole days are read from daily rollup rows unless
 * the resolution is hourly. All other hours are read from hourly rollup rows. Every hour of an account is in exactly one segment. If dirty
 * hours are listed, their segments come last. The other segments ascend without gaps and cover the window.
 */
export function planSegments(window: Window, resolution: Resolution, rollups: ReadableRollups): Segment[] {
  const { dirtyHours } = rollups;
  if (!('windows' in dirtyHours)) return withDirtyHoursFromEvents(planSealed(window, resolution, rollups), dirtyHours);
  const segments: Segment[] = [];
  let { startTime } = window;
  for (const dirty of dirtyHours.windows) {
    const [from, to] = [clamp(dirty.startTime, window), clamp(dirty.endTime, window)];
    segments.push(...planSealed({ startTime, endTime: from }, resolution, rollups), { source: 'events', from, to });
    startTime = to;
  }
  segments.push(...planSealed({ startTime, endTime: window.endTime }, resolution, rollups));
  return segments.filter(isNotEmpty);
}

/**
 * Takes dirty hours (whose rollup rows may lack events), and days with dirty hours, out of the segments of rollup rows. Adds segments that
 * read the dirty hours from the events, and the days' other hours from hourly rollup rows.
 */
function withDirtyHoursFromEvents(segments: readonly Segment[], dirtyHours: readonly RollupKey[]): Segment[] {
  const dirty: RollupKey[] = [];
  const ofDays: RollupKey[] = [];
  const reduced = segments.map((segment): Segment => {
    const { source, from, to } = segment;
    const hours = dirtyHours.filter(({ bucket }) => bucket >= from && bucket < to);
    if (source === 'events' || hours.length === 0) return segment;
    dirty.push(...hours);
    if (source === 'hourly') return { ...segment, except: hours };
    ofDays.push(...hours);
    return { ...segment, except: daysOf(hours).map(({ day }) => day) };
  });
  if (dirty.length === 0) return reduced;
  const events: Segment = { source: 'events', ...spanOf(dirty, MS_PER_HOUR), only: dirty };
  return [...reduced, ...restOfDays(ofDays), events];
}

/** Returns the span from the start of the first bucket to the end of the last. `buckets` is in ascending order and not empty. */
function spanOf(buckets: readonly RollupKey[], length: number): TimeSpan {
  const [from = 0, last = 0] = [buckets[0]?.bucket, buckets.at(-1)?.bucket];
  return { from, to: last + length };
}

/** Returns the days that contain the hours, and the number of the given hours in each day. The hours ascend. */
function daysOf(hours: readonly RollupKey[]): { readonly day: RollupKey; count: number }[] {
  const days = new Map<string, { readonly day: RollupKey; count: number }>();
  for (const { accountId, bucket } of hours) {
    const day = { accountId, bucket: bucketOf(bucket, 'daily') };
    const key = `${day.bucket} ${accountId}`;
    const known = days.get(key);
    if (known) known.count += 1;
    else days.set(key, { day, count: 1 });
  }
  return [...days.values()];
}

/** Reads the other hours of days with dirty hours. Lists whole days, because ClickHouse parses this faster than up to 23 hours per day. */
function restOfDays(hours: readonly RollupKey[]): Segment[] {
  const days = daysOf(hours).flatMap(({ day, count }) => (count < MS_PER_DAY / MS_PER_HOUR ? [day] : []));
  if (days.length === 0) return [];
  const { from, to } = spanOf(days, MS_PER_DAY);
  const except = hours.filter(({ bucket }) => bucket >= from && bucket < to);
  return [{ source: 'hourly', from, to, days, except }];
}

/** Plans a window as if no hour were dirty. The segments ascend without gaps and cover the window exactly. */
function planSealed({ startTime, endTime }: Window, resolution: Resolution, sealed: ReadableRollups): Segment[] {
  const hours = spanBetween(nextBucket(startTime, 'hourly'), Math.min(bucketOf(endTime, 'hourly'), sealed.hourly));
  if (!hours) return [{ source: 'events', from: startTime, to: endTime }];
  const days =
    resolution === 'hourly'
      ? undefined
      : spanBetween(nextBucket(hours.from, 'daily'), Math.min(bucketOf(hours.to, 'daily'), sealed.daily));
  const segments: Segment[] = [
    { source: 'events', from: startTime, to: hours.from },
    { source: 'hourly', from: hours.from, to: days?.from ?? hours.to },
    { source: 'daily', from: days?.from ?? hours.to, to: days?.to ?? hours.to },
    { source: 'hourly', from: days?.to ?? hours.to, to: hours.to },
    { source: 'events', from: hours.to, to: endTime },
  ];
  return segments.filter(isNotEmpty);
}

function isNotEmpty({ from, to }: TimeSpan): boolean {
  return from < to;
}

function spanBetween(from: EpochMs, to: EpochMs): { from: EpochMs; to: EpochMs } | undefined {
  return from < to ? { from, to } : undefined;
}

export interface Selection {
  readonly accounts: Accounts;
  /** The requested window. It may begin or end in years that cannot have events; {@link withEvents} cuts such years off. */
  readonly window: Window;
  readonly filters: DimensionValues;
  /** Values to exclude, by dimension. Exclusions take precedence over the filters. */
  readonly excluded?: DimensionValues;
}

/** Lists of values by dimension. A list is never empty. */
export type DimensionValues = Readonly<Partial<Record<MetricsDimension, readonly string[]>>>;

export interface Filter {
  readonly dimension: MetricsDimension;
  readonly condition: string;
}

export function filtersOf({ filters, excluded = {} }: Pick<Selection, 'filters' | 'excluded'>): Filter[] {
  return [
    ...conditionsOn(filters, '=', 'IN', (dimension) => dimension),
    ...conditionsOn(excluded, '!=', 'NOT IN', excludedParameter),
  ];
}

function conditionsOn(
  values: DimensionValues,
  one: '=' | '!=',
  several: 'IN' | 'NOT IN',
  parameterOf: (dimension: MetricsDimension) => string,
): Filter[] {
  return METRICS_DIMENSIONS.filter((dimension) => values[dimension] !== undefined).map((dimension) => {
    const parameter = parameterOf(dimension);
    const comparison =
      values[dimension]?.length === 1 ? `${one} {${parameter}: String}` : `${several} {${parameter}: Array(String)}`;
    return { dimension, condition: `${columnOf(dimension)} ${comparison}` };
  });
}

export function columnOf(dimension: MetricsDimension): string {
  return dimension === 'account' ? 'account_id' : dimension;
}

function excludedParameter(dimension: string): string {
  return `excluded_${dimension}`;
}

export type TimeSpan = Omit<Segment, 'source'>;

/**
 * Selects the events of a span that are not voided. The condition on hours limits the rows that ClickHouse reads. The exact window is a
 * condition on the row that FINAL picks, because a revision may move an event within its hour.
 */
export function eventsCondition(accounts: Accounts, span: TimeSpan, index: number): string[] {
  return [...eventsOfSpan(accounts, span, index), 'NOT voided'];
}

export function eventsOfSpan(accounts: Accounts, span: TimeSpan, index: number): string[] {
  const times = isOfWholeHours(span)
    ? bucketsCondition('event_hour', span, index)
    : [
        `event_hour >= toStartOfHour(fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC'))`,
        `event_hour <= toDateTime(intDiv({to_${index}: Int64} - 1, 1000), 'UTC')`,
        `timestamp >= fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC')`,
        `timestamp < fromUnixTimestamp64Milli({to_${index}: Int64}, 'UTC')`,
      ];
  return [...accountsCondition(accounts), ...times];
}

/** @param column the start of an hour or day. The span must begin and end at such a start. */
export function bucketsCondition(column: string, { only, except, days }: TimeSpan, index: number): string[] {
  return [
    `${column} >= {from_${index}: UInt32}`,
    `${column} < {to_${index}: UInt32}`,
    ...(days ? [`(account_id, toStartOfDay(${column})) IN {days_${index}: ${BUCKETS}}`] : []),
    ...(only ? [`(account_id, ${column}) IN {only_${index}: ${BUCKETS}}`] : []),
    ...(except ? [`(account_id, ${column}) NOT IN {except_${index}: ${BUCKETS}}`] : []),
  ];
}

const BUCKETS = "Array(Tuple(String, DateTime('UTC')))";

function listParameter(buckets: readonly RollupKey[]): Parameter {
  return buckets.map(({ accountId, bucket }) => new TupleParam([accountId, dateTime(bucket)]));
}

export function selectionParameters(
  { accounts, filters, excluded = {} }: Omit<Selection, 'window'>,
  segments: readonly TimeSpan[],
): StatementParameters {
  const times = segments.map((segment, index) => timeParameters(segment, index));
  const compared = [
    ...Object.entries(filters),
    ...Object.entries(excluded).map(([dimension, values]) => [excludedParameter(dimension), values] as const),
  ];
  const values = compared.map(([parameter, values]) => [parameter, values.length === 1 ? values[0] : values]);
  return { ...accountsParameters(accounts), ...Object.assign({}, ...times), ...Object.fromEntries(values) };
}

const EVENTS: Window = { startTime: 0, endTime: Date.UTC(2106, 0) };

/** Returns the part of the window that may have events. The part may be empty. */
export function withEvents({ startTime, endTime }: Window): Window {
  return { startTime: clamp(startTime, EVENTS), endTime: clamp(endTime, EVENTS) };
}

function clamp(instant: EpochMs, { startTime, endTime }: Window): EpochMs {
  return Math.min(Math.max(instant, startTime), endTime);
}

/**
 * Returns the times of a span as SQL parameters: seconds for whole hours, otherwise milliseconds. With seconds, ClickHouse compares
 * DateTime columns as plain numbers, which saves a tenth of the planning time of a short statement.
 */
function timeParameters(span: TimeSpan, index: number): StatementParameters {
  const unit = isOfWholeHours(span) ? 1000 : 1;
  const { only, except, days } = span;
  return {
    [`from_${index}`]: span.from / unit,
    [`to_${index}`]: span.to / unit,
    ...(only && { [`only_${index}`]: listParameter(only) }),
    ...(except && { [`except_${index}`]: listParameter(except) }),
    ...(days && { [`days_${index}`]: listParameter(days) }),
  };
}

const DATE_TIME_END: EpochMs = 2 ** 32 * 1000;

function isOfWholeHours({ from, to }: TimeSpan): boolean {
  return from >= 0 && to < DATE_TIME_END && bucketOf(from, 'hourly') === from && bucketOf(to, 'hourly') === to;
}
