/**
 * GB-seconds of workloads that run for long, reported while they run: a crash loses what has passed since the last report. Time is
 * measured by a clock that nobody sets; the wall clock only says in which hours it lies.
 */
import {
  type Checked,
  DIMENSIONS,
  decimalOfNumber,
  divideHalfEven,
  type EpochMs,
  formatScaled,
  MS_PER_HOUR,
  parseDecimalText,
  rejected,
  toScaled,
  USAGE_SCALE,
  type UsageEventInput,
} from '@meterline/catalog/events';
import { checkEvent, type EventToRecord } from './event-text.js';

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

/** @throws whatever a getter of the workload throws */
export function checkWorkload(input: Workload, now: EpochMs): Checked<Workload> {
  const { gb, ...event } = input;
  const checked = checkEvent({ ...event, usage: gb }, now);
  if (!checked.ok) return checked;
  const { unit } = DIMENSIONS[input.billingDimension];
  if (unit === 'gbs') return { ok: true, value: { ...input } };
  return rejected('invalid_billing_dimension', `${input.billingDimension} is not measured in GB-seconds; record it`);
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

export function hourSlices(from: EpochMs, to: EpochMs): HourSlice[] {
  const slices: HourSlice[] = [];
  for (let start = from; start < to; ) {
    const end = Math.min(to, start - (start % MS_PER_HOUR) + MS_PER_HOUR);
    slices.push({ from: start, ms: end - start });
    start = end;
  }
  return slices;
}

/** What a timer needs to know of time: what o'clock it is, and how much has passed since any fixed instant, in milliseconds. */
export interface Clock {
  now(): EpochMs;
  elapsed(): number;
}

/** @returns false when there is no room for the event; it is offered again, with what has passed by then */
export type Offer = (event: EventToRecord) => boolean;

/** The workloads that run, and the interval at which they report. */
export class UsageTimers {
  readonly #timers = new Set<UsageTimer>();
  readonly #intervalMs: number;
  readonly #clock: Clock;
  readonly #offer: Offer;
  #interval: NodeJS.Timeout | undefined;

  constructor(intervalMs: number, clock: Clock, offer: Offer) {
    this.#intervalMs = intervalMs;
    this.#clock = clock;
    this.#offer = offer;
  }

  /** @param workload is valid */
  start(workload: Workload): RunningTimer {
    const timer = new UsageTimer(workload, this.#clock, this.#offer);
    this.#timers.add(timer);
    this.#interval ??= setInterval(() => this.reportAll(), this.#intervalMs).unref();
    return {
      stop: () => {
        timer.stop();
        this.#report(timer);
      },
    };
  }

  reportAll(): void {
    for (const timer of this.#timers) this.#report(timer);
  }

  stopAll(): void {
    for (const timer of this.#timers) timer.stop();
    this.reportAll();
    clearInterval(this.#interval);
  }

  /** A stopped one that finds no room reports again at the next interval. */
  #report(timer: UsageTimer): void {
    if (timer.report() && timer.isStopped) this.#timers.delete(timer);
    if (this.#timers.size > 0) return;
    clearInterval(this.#interval);
    this.#interval = undefined;
  }
}

const MS_PER_SECOND = 1_000n;

class UsageTimer {
  readonly #event: Omit<EventToRecord, 'usage'>;
  /** Scaled by 10^9. */
  readonly #gb: bigint;
  readonly #clock: Clock;
  readonly #offer: Offer;
  readonly #startedAt: number;
  #stoppedAt: number | undefined;
  #reportedMs = 0;

  constructor({ gb, ...event }: Workload, clock: Clock, offer: Offer) {
    this.#event = event;
    const digits = typeof gb === 'number' ? decimalOfNumber(gb) : parseDecimalText(gb);
    this.#gb = digits ? toScaled(digits, USAGE_SCALE) : 0n;
    this.#clock = clock;
    this.#offer = offer;
    this.#startedAt = clock.elapsed();
  }

  get isStopped(): boolean {
    return this.#stoppedAt !== undefined;
  }

  stop(): void {
    this.#stoppedAt ??= this.#clock.elapsed();
  }

  /** An event for each hour since the last report. @returns whether there was room for all of them */
  report(): boolean {
    const elapsed = this.#clock.elapsed();
    const until = this.#stoppedAt ?? elapsed;
    const to = this.#clock.now() - Math.round(elapsed - until);
    const from = to - (Math.round(until - this.#startedAt) - this.#reportedMs);
    for (const slice of hourSlices(from, to)) {
      const reportedMs = this.#reportedMs + slice.ms;
      const usage = this.#usageOf(reportedMs) - this.#usageOf(this.#reportedMs);
      const timestamp = new Date(slice.from).toISOString();
      if (!this.#offer({ ...this.#event, usage: formatScaled(usage, USAGE_SCALE), timestamp })) return false;
      this.#reportedMs = reportedMs;
    }
    return true;
  }

  /** Since the start, so that what is rounded off a slice is in the next one. */
  #usageOf(ms: number): bigint {
    return divideHalfEven(this.#gb * BigInt(ms), MS_PER_SECOND);
  }
}
