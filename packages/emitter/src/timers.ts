/**
 * GB-seconds of workloads that run for long, reported while they run: a crash loses what has passed since the last report. Time is
 * measured by a clock that nobody sets; the wall clock only says in which hours it lies.
 */
import {
  type Checked,
  DIMENSIONS,
  divideHalfEven,
  type EpochMs,
  formatScaled,
  MS_PER_HOUR,
  rejected,
  USAGE_SCALE,
  type UsageEventInput,
} from '@meterline/catalog/plain';
import type { EventToRecord } from './event.js';
import { checkUsage, type Offer } from './sums.js';

export type GbSecondsDimension = {
  [name in keyof typeof DIMENSIONS]: (typeof DIMENSIONS)[name]['unit'] extends 'gbs' ? name : never;
}[keyof typeof DIMENSIONS];

/** What runs: whose it is, and how many GB it holds. */
export interface Workload
  extends Pick<UsageEventInput, 'accountId' | 'workspace' | 'resourceType' | 'resourceName' | 'resourceUuid'> {
  readonly billingDimension: GbSecondsDimension;
  /** A number, or a decimal as text. */
  readonly gb: number | string;
}

/** A workload that can be measured. */
export interface CheckedWorkload {
  readonly event: Omit<EventToRecord, 'usage'>;
  /** Scaled by 10^9. */
  readonly gb: bigint;
}

/** @throws whatever a getter of the workload throws */
export function checkWorkload({ gb, ...event }: Workload, now: EpochMs): Checked<CheckedWorkload> {
  const checked = checkUsage({ ...event, usage: gb }, now);
  if (!checked.ok) return checked;
  const { billingDimension, usage } = checked.value.read;
  if (DIMENSIONS[billingDimension].unit === 'gbs') return { ok: true, value: { event, gb: usage } };
  return rejected('invalid_billing_dimension', `${billingDimension} is not in GB-seconds; record it`);
}

export interface RunningTimer {
  /** Reports what has passed since the last report. Stopping twice is stopping once. */
  stop(): void;
}

/** Part of a span of time that lies in one UTC hour. */
export interface HourSlice {
  readonly from: EpochMs;
  readonly ms: number;
}

export function* hourSlices(from: EpochMs, to: EpochMs): Generator<HourSlice> {
  for (let start = from; start < to; ) {
    const end = Math.min(to, start - (start % MS_PER_HOUR) + MS_PER_HOUR);
    yield { from: start, ms: end - start };
    start = end;
  }
}

/** What a timer needs to know of time: what o'clock it is, and how much has passed since any fixed instant, in milliseconds. */
export interface Clock {
  now(): EpochMs;
  elapsed(): number;
}

/** The workloads that run, and the interval at which they report. */
export interface Timers {
  start(workload: CheckedWorkload): RunningTimer;
  reportAll(): void;
  /** Those that run measure no more, and report once again. */
  stopAll(): void;
}

export function openTimers(intervalMs: number, clock: Clock, offer: Offer): Timers {
  const timers = new Set<Timer>();
  let interval: NodeJS.Timeout | undefined;

  function report(timer: Timer): void {
    if (timer.report()) timers.delete(timer);
    if (timers.size > 0) return;
    clearInterval(interval);
    interval = undefined;
  }

  function reportAll(): void {
    for (const timer of timers) report(timer);
  }

  return {
    start: (workload) => {
      const timer = startTimer(workload, clock, offer);
      timers.add(timer);
      interval ??= setInterval(reportAll, intervalMs).unref();
      return {
        stop: () => {
          timer.stop();
          report(timer);
        },
      };
    },
    reportAll,
    stopAll: () => {
      for (const timer of timers) timer.stop();
    },
  };
}

const MS_PER_SECOND = 1_000n;

interface Timer {
  stop(): void;
  /** An event for each hour since the last report. @returns whether it is stopped, and there was room for all of them */
  report(): boolean;
}

function startTimer({ event, gb }: CheckedWorkload, clock: Clock, offer: Offer): Timer {
  const startedAt = clock.elapsed();
  let stoppedAt: number | undefined;
  let reportedMs = 0;

  /** Since the start, so that what is rounded off a slice is in the next one. */
  const usageOf = (ms: number) => divideHalfEven(gb * BigInt(ms), MS_PER_SECOND);

  return {
    stop: () => {
      stoppedAt ??= clock.elapsed();
    },
    report: () => {
      const elapsed = clock.elapsed();
      const until = stoppedAt ?? elapsed;
      const to = clock.now() - Math.round(elapsed - until);
      const from = to - (Math.round(until - startedAt) - reportedMs);
      for (const slice of hourSlices(from, to)) {
        const nowReportedMs = reportedMs + slice.ms;
        const usage = formatScaled(usageOf(nowReportedMs) - usageOf(reportedMs), USAGE_SCALE);
        if (!offer({ ...event, usage, timestamp: new Date(slice.from).toISOString() })) return false;
        reportedMs = nowReportedMs;
      }
      return stoppedAt !== undefined;
    },
  };
}
