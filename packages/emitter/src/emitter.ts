/** What a runtime reports its usage with. */
import { type Checked, type EpochMs, rejected, type UsageEventInput } from '@meterline/catalog/plain';
import { openBacklog } from './backlog.js';
import { openCollector } from './collector.js';
import { checkEvent, type EventToRecord } from './event.js';
import { checkOptions, type EmitterOptions } from './options.js';
import { type Counters, errorMessage, exposeMetrics, rejectedProblem, reporter, type Tally } from './problems.js';
import { startSender } from './sender.js';
import { Spool } from './spool.js';
import {
  checkUsage,
  checkWorkload,
  openSums,
  openTimers,
  type RunningTimer,
  type UsageToSum,
  type Workload,
} from './sums.js';

const FLUSH_TIMEOUT_MS = 10_000;

export interface Emitter {
  /**
   * Takes an event, and does not wait for anything: with a spool the event is in the file when this returns. It gets an id
   * (UUID version 7) and the time, unless it has them. Never throws.
   * @returns the event's id; undefined when the event is rejected or dropped, which is counted and reported
   */
  record(event: EventToRecord): string | undefined;

  /** Adds usage to a sum, which becomes one event at the end of its window. A crash loses the sums of the window. Never throws. */
  add(usage: UsageToSum): void;

  /**
   * Starts to measure a workload in GB-seconds, which are recorded at an interval, each UTC hour for itself. Never throws; a
   * workload that is rejected is not measured.
   */
  start(workload: Workload): RunningTimer;

  /**
   * Sends everything that was recorded up to now, without waiting for full batches. Never rejects.
   * @returns whether all of it is accepted, but for what the collector has rejected; what is not goes on being sent
   */
  flush(within?: Within): Promise<boolean>;

  /**
   * Stops all timers, reports the sums, sends what there is, and ends the connection. What could not be sent in time stays in
   * the spool for the next start; without one it is lost. Never rejects.
   * @returns whether everything was sent
   */
  close(within?: Within): Promise<boolean>;

  /** Closes at a signal of the process, and then lets it end the process, unless the program listens for the signal too. */
  closeOn(signal: NodeJS.Signals, within?: Within): void;

  readonly counters: Counters;
}

interface Within {
  /** Without it 10 s. `Infinity` is as long as it takes. */
  readonly timeoutMs?: number;
}

/**
 * Opens an emitter; one is enough for a process. It does not wait for the collector.
 * @throws EmitterError when an option is invalid, or the spool is in use or unusable
 */
export async function openEmitter(options: EmitterOptions): Promise<Emitter> {
  const checked = checkOptions(options);
  const report = reporter(checked.onProblem);
  const collector = openCollector(checked.url, checked.apiKey, checked.fetch);
  const spool = checked.spool && (await Spool.open(checked.spool, report));
  const tally: Tally = { recorded: 0, sent: 0, retried: 0, rejected: 0, dropped: 0, spooled: 0 };
  const backlog = openBacklog(checked.memoryBytes, spool);
  const sender = startSender(backlog, collector, checked, tally, report);
  const timers = openTimers(checked.reportMs, { now: Date.now, elapsed: () => performance.now() }, offer);
  const sums = openSums(checked.reportMs, offerChecked);
  const counters = () => ({ ...tally, unsent: backlog.unsent });
  const hideMetrics = await exposeMetrics(counters);
  let isDropping = false;
  /** To new calls; sums and timers may still find room until it has ended. */
  let isClosed = false;
  let hasEnded = false;
  let closing: Promise<boolean> | undefined;

  /** @returns undefined for what is rejected, which is counted and reported */
  function accepted<I, T>(input: I, check: (input: I, now: EpochMs) => Checked<T>): T | undefined {
    let checked: Checked<T>;
    try {
      checked = check(input, Date.now());
    } catch (error) {
      checked = rejected('event_not_an_object', `an event cannot be read: ${errorMessage(error)}`);
    }
    if (checked.ok) return checked.value;
    tally.rejected += 1;
    report(rejectedProblem(checked.reason, checked.message, input));
    return undefined;
  }

  /** Like `accepted`, for a new call: when the emitter is closed, what is accepted is dropped. */
  function taken<I, T>(input: I, check: (input: I, now: EpochMs) => Checked<T>): T | undefined {
    const value = accepted(input, check);
    return value && isClosed ? drop() : value;
  }

  /** @returns false when there is no room */
  function keep(event: UsageEventInput): boolean {
    const place = backlog.add(JSON.stringify(event));
    if (place === 'full') return false;
    tally.recorded += 1;
    if (place === 'spool') tally.spooled += 1;
    isDropping = false;
    sender.added();
    return true;
  }

  /** @returns false when there is no room now; what is rejected, or dropped at the end, is done with */
  function offer(event: EventToRecord): boolean {
    const sent = accepted(event, checkEvent)?.sent;
    return !sent || offerChecked(sent);
  }

  /** Like `offer`, without a check: a sum was checked when its usage was added, and the clock may have been set back since. */
  function offerChecked(event: UsageEventInput): boolean {
    if (keep(event)) return true;
    if (hasEnded) drop();
    return hasEnded;
  }

  function offerRest(): void {
    timers.reportAll();
    sums.reportAll();
  }

  function drop(): undefined {
    tally.dropped += 1;
    const why = isClosed ? 'the emitter is closed' : 'there is no room';
    if (!isDropping) report({ code: 'dropped', message: `usage events are dropped: ${why}` });
    isDropping = true;
  }

  async function end(timeoutMs: number): Promise<boolean> {
    isClosed = true;
    timers.stopAll();
    offerRest();
    const until = performance.now() + timeoutMs;
    let recorded: number;
    let isSent: boolean;
    // What has found no room may find it when all that had is sent, or meanwhile; then it is sent the next time.
    do {
      ({ recorded } = tally);
      isSent = await sender.flush(until - performance.now());
      offerRest();
    } while (isSent && tally.recorded > recorded);
    hasEnded = true;
    const { dropped } = tally;
    offerRest();
    sender.stop();
    backlog.close();
    await spool?.close();
    hideMetrics();
    return isSent && tally.dropped === dropped;
  }

  const emitter: Emitter = {
    record: (event) => {
      const sent = taken(event, checkEvent)?.sent;
      return sent && (keep(sent) ? sent.eventId : drop());
    },
    add: (usage) => {
      const checked = taken(usage, checkUsage);
      if (checked && !sums.add(checked)) drop();
    },
    start: (workload) => {
      const checked = taken(workload, checkWorkload);
      return checked ? timers.start(checked) : { stop: () => undefined };
    },
    flush: ({ timeoutMs = FLUSH_TIMEOUT_MS } = {}) => sender.flush(timeoutMs),
    close: ({ timeoutMs = FLUSH_TIMEOUT_MS } = {}) => {
      closing ??= end(timeoutMs);
      return closing;
    },
    closeOn: (signal, within) => {
      let isAlone: boolean | undefined;
      const listener = async () => {
        // The first time, and before all others: one that listens once is gone when it has been called.
        isAlone ??= process.listenerCount(signal) === 1;
        await emitter.close(within);
        process.off(signal, listener);
        if (isAlone) process.kill(process.pid, signal);
      };
      process.prependListener(signal, listener);
    },
    get counters() {
      return counters();
    },
  };
  return emitter;
}
