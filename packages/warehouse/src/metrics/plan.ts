/** Which table answers which part of a window. Pure. Source: DESIGN section 6. */
import type { EpochMs, Resolution, Window } from '@meterline/catalog';
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
