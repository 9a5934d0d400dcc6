/**
 * What a query reads: which table answers which part of its window, and the conditions that its events must meet there,
 * with their parameters. Pure. Source: DESIGN section 6.
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
import { type AccountBucket, bucketOf, GRAIN_MS, type Grain, nextBucket } from '../rollups/rollup-rows.js';
import { dateTime } from '../rollups/sources.js';
import type { ReadableRollups } from '../rollups/watermarks.js';

/**
 * Part of a window, from <= time < to, and what answers for it: the events themselves or the rollup rows of a grain. Those of
 * some buckets alone, or of all but some, and hours of some days alone, where these are given by their starts.
 */
export interface Segment {
  readonly source: 'events' | Grain;
  readonly from: EpochMs;
  readonly to: EpochMs;
  readonly only?: readonly AccountBucket[];
  readonly except?: readonly AccountBucket[];
  readonly days?: readonly AccountBucket[];
}

/**
 * With more dirty hours than this in a window everything from the first to the last is read from the events. They are one
 * parameter, which may have 128 KB: 12 bytes for each.
 */
const MOST_DIRTY_HOURS = 5_000;

/**
 * Events for the parts of hours at the window's edges, for what is not sealed and for dirty hours, whole days where the
 * resolution is no finer, hours in between. Every instant of the window lies in exactly one segment. Those of dirty
 * hours are the last; the others ascend, touch each other and cover the window.
 */
export function planSegments(window: Window, resolution: Resolution, rollups: ReadableRollups): Segment[] {
  const sealed = planSealed(window, resolution, rollups);
  const dirty = dirtyHoursIn(sealed, rollups.dirtyHours);
  if (dirty.length === 0) return sealed;
  if (dirty.length <= MOST_DIRTY_HOURS) return withoutDirtyHours(sealed, dirty);
  const { from, to } = spanOf(dirty, MS_PER_HOUR);
  const segments: Segment[] = [
    ...planSealed({ startTime: window.startTime, endTime: from }, resolution, rollups),
    { source: 'events', from, to },
    ...planSealed({ startTime: to, endTime: window.endTime }, resolution, rollups),
  ];
  return segments.filter(isNotEmpty);
}

/** The dirty hours that would be read from rollup rows. */
function dirtyHoursIn(segments: readonly Segment[], dirtyHours: readonly AccountBucket[]): AccountBucket[] {
  const ofRollups = segments.filter(({ source }) => source !== 'events');
  return dirtyHours.filter(({ bucket }) => ofRollups.some(({ from, to }) => bucket >= from && bucket < to));
}

/**
 * Dirty hours are left out of hours' rollup rows, and their days out of days' rollup rows; then the rest of these days is added.
 */
function withoutDirtyHours(segments: readonly Segment[], dirty: readonly AccountBucket[]): Segment[] {
  const ofDays: AccountBucket[] = [];
  const reduced = segments.map((segment): Segment => {
    const { source, from, to } = segment;
    const hours = dirty.filter(({ bucket }) => bucket >= from && bucket < to);
    if (source === 'events' || hours.length === 0) return segment;
    if (source === 'hourly') return { ...segment, except: hours };
    ofDays.push(...hours);
    return { ...segment, except: daysOf(hours).map(({ day }) => day) };
  });
  const events: Segment = { source: 'events', ...spanOf(dirty, MS_PER_HOUR), only: dirty };
  return [...reduced.filter(hasBuckets), ...restOfDays(ofDays), events];
}

/** Whether anything is left of a segment of rollup rows. */
function hasBuckets({ source, from, to, except }: Segment): boolean {
  if (source === 'events' || except === undefined || areOfAccounts(except)) return true;
  return except.length < (to - from) / GRAIN_MS[source];
}

function areOfAccounts([first]: readonly AccountBucket[]): boolean {
  return first?.accountId !== undefined;
}

/** From the first to the end of the last. @param buckets ascending, at least one */
function spanOf(buckets: readonly AccountBucket[], length: number): TimeSpan {
  const [from = 0, last = 0] = [buckets[0]?.bucket, buckets.at(-1)?.bucket];
  return { from, to: last + length };
}

/** The days that the hours are of, and how many of each. @param hours ascending */
function daysOf(hours: readonly AccountBucket[]): { readonly day: AccountBucket; count: number }[] {
  const days = new Map<string, { readonly day: AccountBucket; count: number }>();
  for (const hour of hours) {
    const day = { ...hour, bucket: bucketOf(hour.bucket, 'daily') };
    const key = `${day.bucket} ${day.accountId ?? ''}`;
    const known = days.get(key);
    if (known) known.count += 1;
    else days.set(key, { day, count: 1 });
  }
  return [...days.values()];
}

/**
 * The other hours of the days of dirty hours, named by their days: 24 times as many names would take longer to read than the days.
 */
function restOfDays(hours: readonly AccountBucket[]): Segment[] {
  const days = daysOf(hours).flatMap(({ day, count }) => (count < MS_PER_DAY / MS_PER_HOUR ? [day] : []));
  if (days.length === 0) return [];
  const { from, to } = spanOf(days, MS_PER_DAY);
  const except = hours.filter(({ bucket }) => bucket >= from && bucket < to);
  return [{ source: 'hourly', from, to, days, except }];
}

/** As if no hour were dirty. The segments ascend, touch each other and cover the window exactly. */
function planSealed({ startTime, endTime }: Window, resolution: Resolution, sealed: ReadableRollups): Segment[] {
  const hours = within(nextBucket(startTime, 'hourly'), Math.min(bucketOf(endTime, 'hourly'), sealed.hourly));
  if (!hours) return [{ source: 'events', from: startTime, to: endTime }];
  const days =
    resolution === 'hourly'
      ? undefined
      : within(nextBucket(hours.from, 'daily'), Math.min(bucketOf(hours.to, 'daily'), sealed.daily));
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

function within(from: EpochMs, to: EpochMs): { from: EpochMs; to: EpochMs } | undefined {
  return from < to ? { from, to } : undefined;
}

/** Which events a query is about: accounts, a window, and values that dimensions must and must not have. */
export interface Selection {
  readonly accounts: Accounts;
  /** A window of any years: {@link withEvents} is the part that is read. */
  readonly window: Window;
  /** For each filtered dimension its values: alternatives, at least one. */
  readonly filters: DimensionValues;
  /** For each dimension named here the values that are left out, whatever the filters say. */
  readonly excluded?: DimensionValues;
}

/** At least one value of each dimension that is named. */
export type DimensionValues = Readonly<Partial<Record<MetricsDimension, readonly string[]>>>;

/** What a dimension's value must be, or must not be; compared with a parameter. */
export interface Filter {
  readonly dimension: MetricsDimension;
  readonly condition: string;
}

/** In canonical order, what is excluded last. */
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
 * The events that count: voided ones do not. A revision may move an event within its hour, so the exact window is a
 * condition on the surviving row, and the hours only narrow what is read.
 */
export function eventsCondition(accounts: Accounts, span: TimeSpan, index: number): string[] {
  return [...eventsOfSpan(accounts, span, index), 'NOT voided'];
}

/** The events of a span, those that count and those that do not. */
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

/** @param column a DateTime at the start of an hour or day, of a segment that begins and ends with one */
export function bucketsCondition(column: string, { only, except, days }: TimeSpan, index: number): string[] {
  return [
    `${column} >= {from_${index}: UInt32}`,
    `${column} < {to_${index}: UInt32}`,
    ...(days ? [listCondition(`toStartOfDay(${column})`, 'IN', `days_${index}`, days)] : []),
    ...(only ? [listCondition(column, 'IN', `only_${index}`, only)] : []),
    ...(except ? [listCondition(column, 'NOT IN', `except_${index}`, except)] : []),
  ];
}

function listCondition(
  column: string,
  comparison: 'IN' | 'NOT IN',
  parameter: string,
  buckets: readonly AccountBucket[],
): string {
  return areOfAccounts(buckets)
    ? `(account_id, ${column}) ${comparison} {${parameter}: Array(Tuple(String, DateTime('UTC')))}`
    : `${column} ${comparison} {${parameter}: Array(UInt32)}`;
}

function listParameter(buckets: readonly AccountBucket[]): Parameter {
  return buckets.map(({ accountId, bucket }) =>
    accountId === undefined ? bucket / 1000 : new TupleParam([accountId, dateTime(bucket)]),
  );
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

/** No event may lie outside. */
const EVENTS: Window = { startTime: 0, endTime: Date.UTC(2106, 0) };

/** The part of the window that may have events; it may be empty. */
export function withEvents({ startTime, endTime }: Window): Window {
  const within = (instant: EpochMs) => Math.min(Math.max(instant, EVENTS.startTime), EVENTS.endTime);
  return { startTime: within(startTime), endTime: within(endTime) };
}

/**
 * The times of segment number `index`: seconds for whole hours, milliseconds for anything else. With seconds a DateTime is compared
 * as the number that it is, and planning a short statement takes a tenth less.
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

/** ClickHouse's DateTime ends here. */
const DATE_TIME_END: EpochMs = 2 ** 32 * 1000;

function isOfWholeHours({ from, to }: TimeSpan): boolean {
  return from >= 0 && to < DATE_TIME_END && bucketOf(from, 'hourly') === from && bucketOf(to, 'hourly') === to;
}
