/**
 * What a question reads: which table answers which part of its window, and the conditions that its events must meet there,
 * with their parameters. Pure. Source: DESIGN section 6.
 */
import {
  type EpochMs,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import type { Relation } from '../clickhouse/connection.js';
import { bucketOf, type Grain, nextBucket } from '../rollups/cells.js';
import type { SealedUntil } from '../rollups/watermarks.js';

/** Part of a window, from <= time < to, and what answers for it: the events themselves or the cells of a grain. */
export interface Segment {
  readonly source: 'events' | Grain;
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/**
 * Events for the parts of hours at the window's edges and for what is not sealed, whole days where the resolution is no
 * finer, hours in between. The segments ascend, touch each other and cover the window exactly.
 */
export function planSegments({ startTime, endTime }: Window, resolution: Resolution, sealed: SealedUntil): Segment[] {
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
  return segments.filter(({ from, to }) => from < to);
}

function within(from: EpochMs, to: EpochMs): { from: EpochMs; to: EpochMs } | undefined {
  return from < to ? { from, to } : undefined;
}

/** Which events a question is about: one account, a window, and values that dimensions must have. */
export interface Selection {
  readonly accountId: string;
  /** Of any years: {@link withEvents} is the part that is read. */
  readonly window: Window;
  /** For each filtered dimension its values: alternatives, at least one. */
  readonly filters: Readonly<Partial<Record<GroupByDimension, readonly string[]>>>;
}

/** A dimension must have one of its values, which are a parameter of the same name. */
export interface Filter {
  readonly dimension: GroupByDimension;
  readonly condition: string;
}

/** In canonical order. */
export function filtersOf({ filters }: Pick<Selection, 'filters'>): Filter[] {
  return GROUP_BY_DIMENSIONS.flatMap((dimension) => {
    const values = filters[dimension];
    if (values === undefined) return [];
    const condition =
      values.length === 1 ? `${dimension} = {${dimension}: String}` : `${dimension} IN {${dimension}: Array(String)}`;
    return [{ dimension, condition }];
  });
}

export type TimeSpan = Pick<Segment, 'from' | 'to'>;

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
    ? bucketsCondition('event_hour', index)
    : [
        `event_hour >= toStartOfHour(fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC'))`,
        `event_hour <= toDateTime(intDiv({to_${index}: Int64} - 1, 1000), 'UTC')`,
        `timestamp >= fromUnixTimestamp64Milli({from_${index}: Int64}, 'UTC')`,
        `timestamp < fromUnixTimestamp64Milli({to_${index}: Int64}, 'UTC')`,
      ];
  return ['account_id = {account_id: String}', ...times];
}

/** @param column a DateTime at the start of an hour or day, of a segment that begins and ends with one */
export function bucketsCondition(column: string, index: number): string[] {
  return [`${column} >= {from_${index}: UInt32}`, `${column} < {to_${index}: UInt32}`];
}

export function selectionParameters(
  { accountId, filters }: Pick<Selection, 'accountId' | 'filters'>,
  segments: readonly TimeSpan[],
): Relation['query_params'] {
  const times = segments.map((segment, index) => timeParameters(segment, index));
  const values = Object.entries(filters).map(([dimension, values]) => [
    dimension,
    values.length === 1 ? values[0] : values,
  ]);
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
function timeParameters(span: TimeSpan, index: number): Record<string, number> {
  const unit = isOfWholeHours(span) ? 1000 : 1;
  return { [`from_${index}`]: span.from / unit, [`to_${index}`]: span.to / unit };
}

/** ClickHouse's DateTime ends here. */
const DATE_TIME_END: EpochMs = 2 ** 32 * 1000;

function isOfWholeHours({ from, to }: TimeSpan): boolean {
  return from >= 0 && to < DATE_TIME_END && bucketOf(from, 'hourly') === from && bucketOf(to, 'hourly') === to;
}
