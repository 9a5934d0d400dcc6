/** Records usage and sends it to a collector in the background. */
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
   * Queues an event without waiting. With a spool (files on disk), the event is in a file when this method returns, unless the spool is full
   * or cannot be written. An event without an ID gets a UUID version 7, and without a timestamp the current time. Never throws.
   * @returns the event's ID, or undefined if the event is rejected or dropped (counted, and reported to `onProblem`)
   */
  record(event: EventToRecord): string | undefined;

  /**
   * Adds usage to a sum in memory. Every `reportMs`, or earlier if there are many sums, each sum becomes one event. A crash loses the sums
   * since then. Never throws.
   */
  add(usage: UsageToSum): void;

  /**
   * Starts to measure a workload in GB-seconds. Every `reportMs`, its usage becomes an event, or one event per UTC hour if an
   * hour has ended meanwhile. Never throws: reports an invalid workload.
   */
  start(workload: Workload): RunningTimer;

  /**
   * Sends all events recorded so far, without waiting for full batches. Never rejects. After the timeout, the emitter still sends the rest.
   * @returns whether the collector processed all of these events before the timeout
   */
  flush(options?: TimeoutOptions): Promise<boolean>;

  /**
   * Stops all timers, turns the sums into events, sends all events, and closes the connection. Never rejects.
   * Events that are still unsent at the timeout stay in the spool for the next process. Without a spool, they are lost.
   * @returns whether all events were sent
   */
  close(options?: TimeoutOptions): Promise<boolean>;

  /** Closes the emitter when the process gets the signal. Then the signal ends the process, unless the program also listens for it. */
  closeOn(signal: NodeJS.Signals, options?: TimeoutOptions): void;

  readonly counters: Counters;
}

interface TimeoutOptions {
  /** Timeout in milliseconds (default: 10,000). `Infinity` waits until everything is sent. */
  readonly timeoutMs?: number;
}

/**
 * Opens an emitter without waiting for the collector. One emitter per process is enough.
 * @throws EmitterError if an option is invalid, or if the spool is in use or unusable
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
  /** Set by `close`. Input of new calls is then dropped, but sums and timers can still add events until `hasEnded`. */
  let isClosed = false;
  let hasEnded = false;
  let closing: Promise<boolean> | undefined;

  /** Validates the input. If the input is invalid, counts and reports the rejection, and returns undefined. */
  function validated<I, T>(input: I, check: (input: I, now: EpochMs) => Checked<T>): T | undefined {
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

  /** Validates the input of a new call. Drops the input if the emitter is closed. */
  function validatedIfOpen<I, T>(input: I, check: (input: I, now: EpochMs) => Checked<T>): T | undefined {
    const value = validated(input, check);
    return value && isClosed ? drop() : value;
  }

  function keep(event: UsageEventInput): boolean {
    const storage = backlog.add(JSON.stringify(event));
    if (storage === 'full') return false;
    tally.recorded += 1;
    if (storage === 'spool') tally.spooled += 1;
    isDropping = false;
    sender.added();
    return true;
  }

  /** Adds an event of a timer to the backlog. @returns false if the timer must try again because the backlog (of unsent events) is full */
  function offer(event: EventToRecord): boolean {
    const sent = validated(event, checkEvent)?.sent;
    return !sent || offerChecked(sent);
  }

  /** Adds an event that was validated before. If the clock was set back since then, its timestamp would now count as in the future. */
  function offerChecked(event: UsageEventInput): boolean {
    if (keep(event)) return true;
    if (hasEnded) drop();
    return hasEnded;
  }

  function offerRemaining(): void {
    timers.reportAll();
    sums.reportAll();
  }

  function drop(): undefined {
    tally.dropped += 1;
    const reason = isClosed ? 'the emitter is closed' : 'there is no room';
    if (!isDropping) report({ code: 'dropped', message: `usage events are dropped: ${reason}` });
    isDropping = true;
  }

  async function end(timeoutMs: number): Promise<boolean> {
    isClosed = true;
    timers.stopAll();
    offerRemaining();
    const until = performance.now() + timeoutMs;
    let recorded: number;
    let isSent: boolean;
    // If the backlog is full, some sums and timers cannot add their events yet. Sending makes room, so repeat until nothing is added.
    do {
      ({ recorded } = tally);
      isSent = await sender.flush(until - performance.now());
      offerRemaining();
    } while (isSent && tally.recorded > recorded);
    hasEnded = true;
    const { dropped } = tally;
    offerRemaining();
    sender.stop();
    backlog.close();
    await spool?.close();
    hideMetrics();
    return isSent && tally.dropped === dropped;
  }

  const emitter: Emitter = {
    record: (event) => {
      const sent = validatedIfOpen(event, checkEvent)?.sent;
      return sent && (keep(sent) ? sent.eventId : drop());
    },
    add: (usage) => {
      const checked = validatedIfOpen(usage, checkUsage);
      if (checked && !sums.add(checked)) drop();
    },
    start: (workload) => {
      const checked = validatedIfOpen(workload, checkWorkload);
      return checked ? timers.start(checked) : { stop: () => undefined };
    },
    flush: ({ timeoutMs = FLUSH_TIMEOUT_MS } = {}) => sender.flush(timeoutMs),
    close: ({ timeoutMs = FLUSH_TIMEOUT_MS } = {}) => {
      closing ??= end(timeoutMs);
      return closing;
    },
    closeOn: (signal, options) => {
      let isAlone: boolean | undefined;
      const listener = async () => {
        // Check whether the program also listens, before its listener runs: a `once` listener removes itself when it runs.
        isAlone ??= process.listenerCount(signal) === 1;
        await emitter.close(options);
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
