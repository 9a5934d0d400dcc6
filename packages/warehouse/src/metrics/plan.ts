/**
 * What a query reads: which table answers which part of its window, and the conditions that its events must meet there,
 * with their parameters. Pure. Source: DESIGN section 6.
 */
import {
  type EpochMs,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  MS_PER_DAY,
  MS_PER_HOUR,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import type { Relation } from '../clickhouse/connection.js';
import { bucketOf, GRAIN_MS, type Grain, nextBucket } from '../rollups/rollup-rows.js';
import type { ReadableRollups } from '../rollups/watermarks.js';

/**
 * Part of a window, from <= time < to, and what answers for it: the events themselves or the rollup rows of a grain. Those of
 * some buckets alone, or of all but some, and hours of some days alone, where these are given by their starts.
 */
export interface Segment {
  readonly source: 'events' | Grain;
  readonly from: EpochMs;
  readonly to: EpochMs;
  readonly only?: readonly EpochMs[];
  readonly except?: readonly EpochMs[];
  readonly days?: readonly EpochMs[];
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
  const [first, last] = [dirty[0], dirty.at(-1)];
  if (first === undefined || last === undefined) return sealed;
  if (dirty.length <= MOST_DIRTY_HOURS) return withoutDirtyHours(sealed, dirty);
  const [from, to] = [first, last + MS_PER_HOUR];
  const segments: Segment[] = [
    ...planSealed({ startTime: window.startTime, endTime: from }, resolution, rollups),
    { source: 'events', from, to },
    ...planSealed({ startTime: to, endTime: window.endTime }, resolution, rollups),
  ];
  return segments.filter(isNotEmpty);
}

/** Those that would be read from rollup rows. */
function dirtyHoursIn(segments: readonly Segment[], dirtyHours: readonly EpochMs[]): EpochMs[] {
  const ofRollups = segments.filter(({ source }) => source !== 'events');
  return dirtyHours.filter((hour) => ofRollups.some(({ from, to }) => hour >= from && hour < to));
}

/**
 * Dirty hours are left out of hours' rollup rows, and their days out of days' rollup rows; then the rest of these days is added.
 */
function withoutDirtyHours(segments: readonly Segment[], dirty: readonly EpochMs[]): Segment[] {
  const ofDays: EpochMs[] = [];
  const reduced = segments.map((segment): Segment => {
    const { source, from, to } = segment;
    const hours = dirty.filter((hour) => hour >= from && hour < to);
    if (source === 'events' || hours.length === 0) return segment;
    if (source === 'hourly') return { ...segment, except: hours };
    ofDays.push(...hours);
    return { ...segment, except: daysOf(hours) };
  });
  const listed = [restOfDays(ofDays), dirtySegment(dirty)];
  return [...reduced.filter(hasBuckets), ...listed.filter((segment) => segment !== undefined)];
}

/** Whether anything is left of a segment of rollup rows. */
function hasBuckets({ source, from, to, except }: Segment): boolean {
  return source === 'events' || except === undefined || except.length < (to - from) / GRAIN_MS[source];
}

/** @param hours ascending */
function daysOf(hours: readonly EpochMs[]): EpochMs[] {
  return [...new Set(hours.map((hour) => bucketOf(hour, 'daily')))];
}

/**
 * The other hours of their days. These are named by their days: 24 times as many names would take longer to read than the days.
 */
function restOfDays(hours: readonly EpochMs[]): Segment | undefined {
  const counts = new Map<EpochMs, number>();
  for (const hour of hours) {
    const day = bucketOf(hour, 'daily');
    counts.set(day, (counts.get(day) ?? 0) + 1);
  }
  const days = [...counts].filter(([, count]) => count < MS_PER_DAY / MS_PER_HOUR).map(([day]) => day);
  const [first, last] = [days[0], days.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const [from, to] = [first, last + MS_PER_DAY];
  return { source: 'hourly', from, to, days, except: hours.filter((hour) => hour >= from && hour < to) };
}

/** @param hours ascending */
function dirtySegment(hours: readonly EpochMs[]): Segment | undefined {
  const [first, last] = [hours[0], hours.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  return { source: 'events', from: first, to: last + MS_PER_HOUR, only: hours };
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

/** Which events a query is about: one account, a window, and values that dimensions must and must not have. */
export interface Selection {
  readonly accountId: string;
  /** Of any years: {@link withEvents} is the part that is read. */
  readonly window: Window;
  /** For each filtered dimension its values: alternatives, at least one. */
  readonly filters: DimensionValues;
  /** The same of values that are left out, whatever the filters say. */
  readonly excluded?: DimensionValues;
}

/** At least one value of each dimension that is named. */
export type DimensionValues = Readonly<Partial<Record<GroupByDimension, readonly string[]>>>;

/** What a dimension's value must be, or must not be; compared with a parameter. */
export interface Filter {
  readonly dimension: GroupByDimension;
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
  parameterOf: (dimension: GroupByDimension) => string,
): Filter[] {
  return GROUP_BY_DIMENSIONS.filter((dimension) => values[dimension] !== undefined).map((dimension) => {
    const parameter = parameterOf(dimension);
    const comparison =
      values[dimension]?.length === 1 ? `${one} {${parameter}: String}` : `${several} {${parameter}: Array(String)}`;
    return { dimension, condition: `${dimension} ${comparison}` };
  });
}

function excludedParameter(dimension: string): string {
  return `excluded_${dimension}`;
}

export type TimeSpan = Omit<Segment, 'source'>;

/**
 * The events that count: voided ones do not. A revision may move an event within its hour, so the exact window is a
 * condition on the surviving row, and the hours only narrow what is read.
 */
export function eventsCondition(span: TimeSpan, index: number): string[] {
  return [...eventsOfSpan(span, index), 'NOT voided'];
}

/** Those that count and those that do not. */
export function eventsOfSpan(span: TimeSpan, index: number): string[] {
  const times = isOfWholeHours(span)
    ? bucketsCondition('event_hour', span, index)
    : [
        `event_hour >= toStartOfHour(fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC'))`,
        `event_hour <= toDateTime(intDiv({to_${index}: Int64} - 1, 1000), 'UTC')`,
        `timestamp >= fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC')`,
        `timestamp < fromUnixTimestamp64Milli({to_${index}: Int64}, 'UTC')`,
      ];
  return ['account_id = {account_id: String}', ...times];
}

/** @param column a DateTime at the start of an hour or day, of a segment that begins and ends with one */
export function bucketsCondition(column: string, { only, except, days }: TimeSpan, index: number): string[] {
  return [
    `${column} >= {from_${index}: UInt32}`,
    `${column} < {to_${index}: UInt32}`,
    ...(days ? [`toStartOfDay(${column}) IN {days_${index}: Array(UInt32)}`] : []),
    ...(only ? [`${column} IN {only_${index}: Array(UInt32)}`] : []),
    ...(except ? [`${column} NOT IN {except_${index}: Array(UInt32)}`] : []),
  ];
}

export function selectionParameters(
  { accountId, filters, excluded = {} }: Omit<Selection, 'window'>,
  segments: readonly TimeSpan[],
): Relation['query_params'] {
  const times = segments.map((segment, index) => timeParameters(segment, index));
  const compared = [
    ...Object.entries(filters),
    ...Object.entries(excluded).map(([dimension, values]) => [excludedParameter(dimension), values] as const),
  ];
  const values = compared.map(([parameter, values]) => [parameter, values.length === 1 ? values[0] : values]);
  return { account_id: accountId, ...Object.assign({}, ...times), ...Object.fromEntries(values) };
}

/** No event may lie outside. */
const EVENTS: Window = { startTime: 0, endTime: Date.UTC(2106, 0) };

/** The part of the window that may have events; it may be empty. */
export function withEvents({ startTime, endTime }: Window): Window {
  const within = (instant: EpochMs) => Math.min(Math.max(instant, EVENTS.startTime), EVENTS.endTime);
  return { startTime: within(startTime), endTime: within(endTime) };
}

/**
 * Of segment number `index`: seconds for whole hours, milliseconds for anything else. With seconds a DateTime is compared
 * as the number that it is, and planning a short statement takes a tenth less.
 */
function timeParameters(span: TimeSpan, index: number): Record<string, number | readonly number[]> {
  const unit = isOfWholeHours(span) ? 1000 : 1;
  const { only, except, days } = span;
  return {
    [`from_${index}`]: span.from / unit,
    [`to_${index}`]: span.to / unit,
    ...(only && { [`only_${index}`]: only.map((start) => start / 1000) }),
    ...(except && { [`except_${index}`]: except.map((start) => start / 1000) }),
    ...(days && { [`days_${index}`]: days.map((start) => start / 1000) }),
  };
}

/** ClickHouse's DateTime ends here. */
const DATE_TIME_END: EpochMs = 2 ** 32 * 1000;

function isOfWholeHours({ from, to }: TimeSpan): boolean {
  return from >= 0 && to < DATE_TIME_END && bucketOf(from, 'hourly') === from && bucketOf(to, 'hourly') === to;
}
