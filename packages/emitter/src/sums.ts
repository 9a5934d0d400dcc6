/** Usage that becomes events as time passes: sums of many small ones, and timers of workloads that run for long. */
import {
  type Checked,
  DIMENSIONS,
  divideHalfEven,
  type EpochMs,
  formatScaled,
  MS_PER_HOUR,
  rejected,
  USAGE_SCALE,
  type UsageEvent,
  type UsageEventInput,
} from '@meterline/catalog/plain';
import { type CheckedEvent, checkEvent, type EventToRecord } from './event.js';

/** Usage that is summed. It has no id and no time of its own. */
export type UsageToSum = Omit<EventToRecord, (typeof ONE_EVENTS)[number]>;

/** What only a single event can have. A sum would lose it. */
const ONE_EVENTS = ['eventId', 'timestamp', 'revision', 'void'] as const;

/** More sums than this are reported before their window ends. A platform has several for each of its tenants. */
const MOST_SUMS = 100_000;
/** The usage of an event is below 10^15. */
const LARGEST_USAGE = 10n ** BigInt(15 + USAGE_SCALE);

/** @throws whatever a getter of the usage throws */
export function checkUsage(input: UsageToSum, now: EpochMs): Checked<CheckedEvent> {
  const field = ONE_EVENTS.find((name) => Object.hasOwn(input, name));
  if (field) return rejected('unknown_field', `${field} is for an event of its own; record it`);
  return checkEvent(input, now);
}

/** @returns false when there is no room for the event; it is offered again, with what has been added by then */
export type Offer<Event = EventToRecord> = (event: Event) => boolean;

/**
 * Sums usage of the same resource and dimension within a window and a UTC hour into one event. Its id and its time are those
 * of the first usage in it, and it is sent as any other event; so it counts once however often it is sent.
 */
export function openSums(windowMs: number, offer: Offer<UsageEventInput>) {
  const sums = new Map<string, { readonly event: UsageEventInput; total: bigint }>();
  let window: NodeJS.Timeout | undefined;

  function openWindow(): void {
    // Not unref'd on purpose: the process stays alive until its sums are reported.
    window ??= setTimeout(reportAll, windowMs);
  }

  /** Sums that find no room stay for the next window. */
  function reportAll(): void {
    clearTimeout(window);
    window = undefined;
    for (const [key, { event, total }] of sums) {
      if (!offer({ ...event, usage: formatScaled(total, USAGE_SCALE) })) break;
      sums.delete(key);
    }
    if (sums.size > 0) openWindow();
  }

  return {
    /** @returns false when there is no room for another sum */
    add: ({ sent, read }: CheckedEvent): boolean => {
      const key = keyOf(read);
      const sum = sums.get(key);
      if (sum && sum.total + read.usage < LARGEST_USAGE) {
        sum.total += read.usage;
        return true;
      }
      if (sum || sums.size >= MOST_SUMS) reportAll();
      if (sums.has(key) || sums.size >= MOST_SUMS) return false;
      sums.set(key, { event: sent, total: read.usage });
      openWindow();
      return true;
    },
    reportAll,
  };
}

/** No name contains the separator. */
function keyOf({ accountId, workspace, resourceName, resourceUuid, billingDimension, timestamp }: UsageEvent): string {
  const hour = Math.floor(timestamp / MS_PER_HOUR);
  return [accountId, workspace, resourceName, resourceUuid, billingDimension, hour].join('\0');
}

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
interface CheckedWorkload {
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

/** The parts of a span of time, each in one UTC hour. */
export function* hourSlices(from: EpochMs, to: EpochMs): Generator<{ readonly from: EpochMs; readonly ms: number }> {
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

/**
 * GB-seconds of workloads that run for long, reported while they run: a crash loses what has passed since the last report. Time is
 * measured by a clock that nobody sets; the wall clock only says in which hours it lies.
 */
export function openTimers(intervalMs: number, clock: Clock, offer: Offer) {
  const timers = new Set<ReturnType<typeof startTimer>>();
  let interval: NodeJS.Timeout | undefined;

  function report(timer: ReturnType<typeof startTimer>): void {
    if (timer.report()) timers.delete(timer);
    if (timers.size > 0) return;
    clearInterval(interval);
    interval = undefined;
  }

  function reportAll(): void {
    for (const timer of timers) report(timer);
  }

  return {
    start: (workload: CheckedWorkload): RunningTimer => {
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
    /** Timers that run measure no more, and report once again. */
    stopAll: () => {
      for (const timer of timers) timer.stop();
    },
  };
}

const MS_PER_SECOND = 1_000n;

function startTimer({ event, gb }: CheckedWorkload, clock: Clock, offer: Offer) {
  const startedAt = clock.elapsed();
  let stoppedAt: number | undefined;
  let reportedMs = 0;

  /** Since the start, so that what is rounded off a slice is in the next one. */
  const usageOf = (ms: number) => divideHalfEven(gb * BigInt(ms), MS_PER_SECOND);

  return {
    stop: () => {
      stoppedAt ??= clock.elapsed();
    },
    /** An event for each hour since the last report. @returns whether it is stopped, and there was room for all of them */
    report: (): boolean => {
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
