/** Converts usage into events over time. Sums combine many small amounts of usage, and timers measure long-running workloads. */
import {
  type Checked,
  divideHalfEven,
  type EpochMs,
  formatScaled,
  MS_PER_HOUR,
  rejected,
  USAGE_SCALE,
  type UsageEvent,
  type UsageEventInput,
  unitOf,
} from '@meterline/catalog/plain';
import { type CheckedEvent, checkEvent, type EventToRecord } from './event.js';

/** Usage to add to a sum. It has no ID and no timestamp of its own. */
export type UsageToSum = Omit<EventToRecord, (typeof EVENT_FIELDS)[number]>;

const EVENT_FIELDS = ['eventId', 'timestamp', 'revision', 'void'] as const;

/** Maximum number of sums in memory. Beyond it, all sums become events early. A platform has several sums per tenant. */
const MAX_SUMS = 100_000;
/** Exclusive upper limit of the usage in an event: 10^15, as a scaled integer. */
const LARGEST_USAGE = 10n ** BigInt(15 + USAGE_SCALE);

export function checkUsage(input: UsageToSum, now: EpochMs): Checked<CheckedEvent> {
  const field = EVENT_FIELDS.find((name) => Object.hasOwn(input, name));
  if (field) return rejected('unknown_field', `${field} is not allowed in a sum; use record() for this event`);
  return checkEvent(input, now);
}

/** Offers an event to the backlog. @returns false if there is no room. The sum or timer then tries again later, with more usage. */
export type Offer<Event = EventToRecord> = (event: Event) => boolean;

/**
 * Adds up the usage of the same resource and billing dimension, within a window and a UTC hour, into one event. The event has the ID and
 * the timestamp of the first usage. Like any event, it counts once even if it is sent several times.
 */
export function openSums(windowMs: number, offer: Offer<UsageEventInput>) {
  const sums = new Map<string, { readonly event: UsageEventInput; total: bigint }>();
  let window: NodeJS.Timeout | undefined;

  function openWindow(): void {
    // Not unref'd on purpose: the process stays alive until the sums are reported.
    window ??= setTimeout(reportAll, windowMs);
  }

  /** Turns all sums into events. If the backlog has no room for a sum, the sum stays for the next window. */
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
    add: ({ sent, read }: CheckedEvent): boolean => {
      const key = keyOf(read);
      const sum = sums.get(key);
      if (sum && sum.total + read.usage < LARGEST_USAGE) {
        sum.total += read.usage;
        return true;
      }
      if (sum || sums.size >= MAX_SUMS) reportAll();
      if (sums.has(key) || sums.size >= MAX_SUMS) return false;
      sums.set(key, { event: sent, total: read.usage });
      openWindow();
      return true;
    },
    reportAll,
  };
}

/** Joins the fields with NUL, because validation ensures that no name contains NUL. */
function keyOf(event: UsageEvent): string {
  const { accountId, workspace, resourceType, resourceName, resourceUuid, billingDimension, timestamp } = event;
  const hour = Math.floor(timestamp / MS_PER_HOUR);
  return [accountId, workspace, resourceType, resourceName, resourceUuid, billingDimension, hour].join('\0');
}

export type GbSecondsDimension = `${string}_gbs`;

export interface Workload
  extends Pick<UsageEventInput, 'accountId' | 'workspace' | 'resourceType' | 'resourceName' | 'resourceUuid'> {
  readonly billingDimension: GbSecondsDimension;
  readonly gb: number | string;
}

interface CheckedWorkload {
  readonly event: Omit<EventToRecord, 'usage'>;
  /** Number of GB, scaled by 10^9. */
  readonly gb: bigint;
}

export function checkWorkload({ gb, ...event }: Workload, now: EpochMs): Checked<CheckedWorkload> {
  const checked = checkUsage({ ...event, usage: gb }, now);
  if (!checked.ok) return checked;
  const { billingDimension, usage } = checked.value.read;
  if (unitOf(billingDimension) === 'gbs') return { ok: true, value: { event, gb: usage } };
  return rejected(
    'invalid_billing_dimension',
    `${billingDimension} is not in GB-seconds; use record() instead of start()`,
  );
}

export interface RunningTimer {
  /** Stops the timer and reports the usage since the last report. Safe to call again. */
  stop(): void;
}

export function* hourSlices(from: EpochMs, to: EpochMs): Generator<{ readonly from: EpochMs; readonly ms: number }> {
  for (let start = from; start < to; ) {
    const end = Math.min(to, start - (start % MS_PER_HOUR) + MS_PER_HOUR);
    yield { from: start, ms: end - start };
    start = end;
  }
}

export interface Clock {
  now(): EpochMs;
  elapsed(): number;
}

/**
 * Measures GB-seconds of long-running workloads and reports them while the workloads run. A crash therefore loses only the usage since the
 * last report. Durations come from the monotonic clock. The wall clock only assigns durations to UTC hours.
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
    /** Stops measuring. The next report includes the usage up to now. */
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

  // Each report is the difference of two totals since the start, so that rounding errors do not accumulate.

  const usageOf = (ms: number) => divideHalfEven(gb * BigInt(ms), MS_PER_SECOND);

  return {
    stop: () => {
      stoppedAt ??= clock.elapsed();
    },
    /** Offers one event per UTC hour since the last report. @returns whether the timer is done: stopped, and its usage is in events */
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
