/**
 * Plans what a query reads: the table for each part of the window, and the conditions on its rows with their parameters. Pure. Source:
 * DESIGN section 6.
 */

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

/**
 * A part of a window, from <= time < to, and the source that it is read from: the events, or the rollup rows of a grain. The lists restrict
 * it to some buckets of accounts, given by their starts.
 */
export interface Segment {
  readonly source: 'events' | Grain;
  readonly from: EpochMs;
  readonly to: EpochMs;
  readonly only?: readonly RollupKey[];
  readonly except?: readonly RollupKey[];
  /** Only the hours of these days. */
  readonly days?: readonly RollupKey[];
}

/**
 * Plans which source each part of a window is read from. Partial hours at the window's edges, unsealed hours and dirty hours come from the
 * events. Whole days come from daily rollup rows unless the resolution is hourly, and all other hours from hourly rollup rows. Every hour
 * of an account is in exactly one segment. The segments of dirty hours, if they are listed, are last; the other segments ascend without
 * gaps and cover the window.
 */
export function planSegments(window: Window, resolution: Resolution, rollups: ReadableRollups): Segment[] {
  const { dirtyHours } = rollups;
  if (!('windows' in dirtyHours)) return withoutDirtyHours(planSealed(window, resolution, rollups), dirtyHours);
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

/** Excludes dirty hours from hourly segments, and their days from daily segments. Then adds the dirty hours and the rest of these days. */
function withoutDirtyHours(segments: readonly Segment[], dirtyHours: readonly RollupKey[]): Segment[] {
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

/** Returns the span from the first bucket to the end of the last. @param buckets ascending, at least one */
function spanOf(buckets: readonly RollupKey[], length: number): TimeSpan {
  const [from = 0, last = 0] = [buckets[0]?.bucket, buckets.at(-1)?.bucket];
  return { from, to: last + length };
}

/** Returns the days that contain the hours, and the number of hours in each. @param hours ascending */
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

/** Reads the clean hours of days with dirty hours. Lists the days: listing up to 23 hours of each would take longer to parse. */
function restOfDays(hours: readonly RollupKey[]): Segment[] {
  const days = daysOf(hours).flatMap(({ day, count }) => (count < MS_PER_DAY / MS_PER_HOUR ? [day] : []));
  if (days.length === 0) return [];
  const { from, to } = spanOf(days, MS_PER_DAY);
  const except = hours.filter(({ bucket }) => bucket >= from && bucket < to);
  return [{ source: 'hourly', from, to, days, except }];
}

/** Plans a window without dirty hours. The segments ascend without gaps and cover the window exactly. */
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

/** Undefined if the span is empty. */
function spanBetween(from: EpochMs, to: EpochMs): { from: EpochMs; to: EpochMs } | undefined {
  return from < to ? { from, to } : undefined;
}

/** The events that a query selects: accounts, a window, and values of dimensions to include and exclude. */
export interface Selection {
  readonly accounts: Accounts;
  /** May be of any years: {@link withEvents} returns the part that is read. */
  readonly window: Window;
  readonly filters: DimensionValues;
  /** Per dimension, the values to exclude, which take precedence over the filters. */
  readonly excluded?: DimensionValues;
}

/** A dimension that is present has at least one value. */
export type DimensionValues = Readonly<Partial<Record<MetricsDimension, readonly string[]>>>;

/** A condition on a dimension's value, which is compared with a parameter. */
export interface Filter {
  readonly dimension: MetricsDimension;
  readonly condition: string;
}

/** Returns the filters in canonical order, exclusions last. */
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
 * Selects the events that count, so no voided ones. A revision may move an event within its hour, so the exact window is a condition on the
 * row that FINAL picks, and the condition on hours only limits what is read.
 */
export function eventsCondition(accounts: Accounts, span: TimeSpan, index: number): string[] {
  return [...eventsOfSpan(accounts, span, index), 'NOT voided'];
}

/** Selects the events of a span, including voided ones. */
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

/** All events are within these bounds. */
const EVENTS: Window = { startTime: 0, endTime: Date.UTC(2106, 0) };

/** Returns the part of the window that may have events. It may be empty. */
export function withEvents({ startTime, endTime }: Window): Window {
  return { startTime: clamp(startTime, EVENTS), endTime: clamp(endTime, EVENTS) };
}

function clamp(instant: EpochMs, { startTime, endTime }: Window): EpochMs {
  return Math.min(Math.max(instant, startTime), endTime);
}

/**
 * Returns the times of segment number `index`: in seconds for whole hours, in milliseconds otherwise. With seconds, DateTime columns are
 * compared as plain numbers, which saves a tenth of a short statement's planning time.
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

/** The end of ClickHouse's DateTime. */
const DATE_TIME_END: EpochMs = 2 ** 32 * 1000;

function isOfWholeHours({ from, to }: TimeSpan): boolean {
  return from >= 0 && to < DATE_TIME_END && bucketOf(from, 'hourly') === from && bucketOf(to, 'hourly') === to;
}
