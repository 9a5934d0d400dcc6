/** Whether the worker consumes: not whether it runs, but whether jobs that wait are being taken. */
import type { EpochMs } from '@meterline/catalog';

/** Jobs may wait this long without any progress; an insert and its retries take less while ClickHouse is there. */
const STALE_MS = 60_000;

export interface Consumption {
  /** Undefined when the queue could not be asked: then jobs may wait. */
  readonly waitingJobs: number | undefined;
  readonly lastProgressAt: EpochMs;
  /** ClickHouse or Redis is away: the worker waits for it on purpose, and a restart would not help. */
  readonly outage: boolean;
}

export function isConsuming({ waitingJobs, lastProgressAt, outage }: Consumption, now: EpochMs): boolean {
  return waitingJobs === 0 || outage || now - lastProgressAt < STALE_MS;
}
