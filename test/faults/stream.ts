/** The stream of a run: events of 30 hours around the end of a month, each with a resource of its own, so that a wrong event can be named. */
import { type EpochMs, MS_PER_HOUR } from '@meterline/catalog';
import type { SeededRandom } from '../harness/seeded-random.js';
import { buildStream, type UsageStream } from '../harness/stream.js';

export interface MonthStream extends UsageStream {
  readonly accountId: string;
  /** Three whole days with all events. */
  readonly window: { readonly startTime: string; readonly endTime: string };
}

export const STREAM_HOURS = 30;
const HOURS_BEFORE = 26;

export function firstHour(newMonth: EpochMs): EpochMs {
  return newMonth - HOURS_BEFORE * MS_PER_HOUR;
}

export function streamWindow(newMonth: EpochMs): MonthStream['window'] {
  const text = (hours: number) => new Date(newMonth + hours * MS_PER_HOUR).toISOString();
  return { startTime: text(-48), endTime: text(24) };
}

/** @param newMonth the first instant of a month */
export function monthStream(random: SeededRandom, accountId: string, events: number, newMonth: EpochMs): MonthStream {
  const stream = buildStream(random, {
    accountId,
    events,
    time: () => firstHour(newMonth) + random.integer(0, STREAM_HOURS * MS_PER_HOUR - 1),
    resources: events,
    shares: { revised: 0.2, copied: 1 / 6, bad: 1 / 20 },
    maxJobEvents: 25,
    mark: `${accountId}/rejected`,
  });
  return { ...stream, accountId, window: streamWindow(newMonth) };
}
