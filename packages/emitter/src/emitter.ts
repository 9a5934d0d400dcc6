/** What a runtime reports its usage with. */
import { type Checked, type EpochMs, isRedisUrl, rejected } from '@meterline/catalog/events';
import { Backlog } from './backlog.js';
import { type Counters, emptyTally, type Tally } from './counters.js';
import { type EventToRecord, eventText } from './event-text.js';
import { type CheckedOptions, checkOptions, EmitterError, type EmitterOptions } from './options.js';
import { type Report, reporter, wordsOf } from './problem.js';
import { Sender } from './sender.js';
import type { Spool, SpoolSettings } from './spool.js';
import { checkUsage, Sums, type UsageToSum } from './sums.js';
import { checkWorkload, type RunningTimer, UsageTimers, type Workload } from './timers.js';
import type { Transport } from './transport.js';

const FLUSH_WITHIN_MS = 10_000;
const NO_TIMER: RunningTimer = { stop: () => undefined };

/**
 * Opens an emitter; one is enough for a process. It does not wait for the collector or Redis.
 * @throws EmitterError when an option is invalid, `bullmq` or `ioredis` is missing for Redis, or the spool is in use or unusable
 */
export async function openEmitter(options: EmitterOptions): Promise<Emitter> {
  const checked = checkOptions(options);
  const report = reporter(checked.onProblem);
  const transport = await openTransport(checked);
  const spool = checked.spool && (await openSpool(checked.spool, report));
  const tally = emptyTally();
  const backlog = new Backlog(checked.memoryBytes, spool);
  const emitter = new Emitter({ options: checked, transport, spool, backlog, tally, report });
  // It fails to load in programs without @opentelemetry/api.
  const telemetry = await import('./telemetry.js').catch(() => undefined);
  if (telemetry) emitter.onClose(telemetry.exposeMetrics(() => emitter.counters));
  return emitter;
}

/**
 * Chooses by the address, and loads no other.
 * @throws EmitterError when there is none for this address, or what it needs is missing; not because nobody answers there
 */
async function openTransport({ url, queuePrefix, queueShards, apiKey }: CheckedOptions): Promise<Transport> {
  // The messages do not repeat the address, which may hold a password.
  if (isRedisUrl(url)) {
    const { openQueueTransport } = await import('./queue-transport.js');
    return openQueueTransport(url, { prefix: queuePrefix, shards: queueShards });
  }
  switch (URL.canParse(url) ? new URL(url).protocol : '') {
    case 'http:':
    case 'https:':
      return (await import('./http-transport.js')).openHttpTransport(url, apiKey);
    default:
      throw new EmitterError('invalid_option', 'url must be an address such as https://… or redis://127.0.0.1:6379');
  }
}

/** Loaded only by those who want one. */
async function openSpool(settings: SpoolSettings, report: Report): Promise<Spool> {
  return (await import('./spool.js')).Spool.open(settings, report);
}

interface Parts {
  readonly options: CheckedOptions;
  readonly transport: Transport;
  readonly spool: Spool | undefined;
  readonly backlog: Backlog;
  readonly tally: Tally;
  readonly report: Report;
}

export class Emitter {
  readonly #backlog: Backlog;
  readonly #sender: Sender;
  readonly #timers: UsageTimers;
  readonly #sums: Sums;
  readonly #tally: Tally;
  readonly #report: Report;
  readonly #endings: (() => unknown)[] = [];
  #isDropping = false;
  #isClosed = false;
  #closing: Promise<boolean> | undefined;

  /** Use {@link openEmitter}. */
  constructor({ options, transport, spool, backlog, tally, report }: Parts) {
    const offer = (event: EventToRecord) => this.#offer(event);
    this.#backlog = backlog;
    this.#tally = tally;
    this.#report = report;
    this.#sender = new Sender(backlog, transport, options, tally, report);
    this.#timers = new UsageTimers(options.timerMs, { now: Date.now, elapsed: () => performance.now() }, offer);
    this.#sums = new Sums(options.sumMs, offer);
    this.onClose(() => backlog.close());
    if (spool) this.onClose(() => spool.close());
  }

  /**
   * Takes an event, and does not wait for anything: with a spool the event is in the file when this returns. It gets an id
   * (UUID version 7) and the time, unless it has them. Never throws.
   * @returns the event's id; undefined when the event is refused or dropped, which is counted and reported
   */
  record(event: EventToRecord): string | undefined {
    const checked = this.#checked(event, eventText);
    if (checked === undefined) return undefined;
    if (this.#keep(checked.text)) return checked.eventId;
    return this.#drop();
  }

  /** The same, but waits for room instead of dropping the event. Its id and time are those of the call. Never rejects. */
  async recordWhenRoom(event: EventToRecord): Promise<string | undefined> {
    const checked = this.#checked(event, eventText);
    if (checked === undefined) return undefined;
    while (!this.#keep(checked.text)) {
      if (this.#isClosed) return this.#drop();
      await this.#sender.settled();
    }
    return checked.eventId;
  }

  /**
   * Adds usage to a sum, which becomes one event at the end of its window: a busy resource costs one event in ten seconds and
   * not one per request. Sums are in memory: a crash loses those of the window. Never throws.
   */
  add(usage: UsageToSum): void {
    const checked = this.#checked(usage, checkUsage);
    if (checked && (this.#isClosed || !this.#sums.add(checked))) this.#drop();
  }

  /**
   * Starts to measure a workload in GB-seconds, which are recorded at an interval, each UTC hour for itself. Never throws; a
   * workload that is refused is not measured.
   */
  start(workload: Workload): RunningTimer {
    const checked = this.#checked(workload, checkWorkload);
    if (checked && !this.#isClosed) return this.#timers.start(checked);
    if (checked) this.#drop();
    return NO_TIMER;
  }

  /**
   * Sends everything that was recorded up to now, without waiting for full batches. Never rejects.
   * @returns whether all of it is accepted, but for what the collector has refused; what is not goes on being sent
   */
  flush({ timeoutMs = FLUSH_WITHIN_MS } = {}): Promise<boolean> {
    return this.#sender.flush(timeoutMs);
  }

  /**
   * Stops all timers, reports the sums, sends what there is, and ends the connection. What could not be sent in time stays in
   * the spool for the next start; without one it is lost. Never rejects.
   * @returns whether everything was sent
   */
  close({ timeoutMs = FLUSH_WITHIN_MS } = {}): Promise<boolean> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  /** Closes at a signal of the process, and then lets it end as it would without this; unless others listen for the signal too. */
  closeOn(signal: NodeJS.Signals, { timeoutMs = FLUSH_WITHIN_MS } = {}): void {
    const onSignal = async () => {
      await this.close({ timeoutMs });
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    };
    process.once(signal, onSignal);
    this.onClose(() => process.off(signal, onSignal));
  }

  get counters(): Counters {
    return { ...this.#tally, unsent: this.#backlog.unsent };
  }

  /** What to do at the end of {@link close}. */
  onClose(ending: () => unknown): void {
    this.#endings.push(ending);
  }

  async #close(timeoutMs: number): Promise<boolean> {
    this.#timers.stopAll();
    this.#sums.reportAll();
    this.#isClosed = true;
    const isSent = await this.#sender.flush(timeoutMs);
    this.#sender.stop();
    for (const end of this.#endings) await end();
    return isSent;
  }

  /** @returns false when there is no room; what is refused is done with */
  #offer(event: EventToRecord): boolean {
    const checked = this.#checked(event, eventText);
    return checked === undefined || this.#keep(checked.text);
  }

  #keep(text: string): boolean {
    if (this.#isClosed) return false;
    const place = this.#backlog.add(text);
    if (place === 'full') return false;
    this.#tally.recorded += 1;
    if (place === 'spool') this.#tally.spooled += 1;
    this.#isDropping = false;
    this.#sender.added();
    return true;
  }

  #checked<I, T>(input: I, check: (input: I, now: EpochMs) => Checked<T>): T | undefined {
    let checked: Checked<T>;
    try {
      checked = check(input, Date.now());
    } catch (error) {
      checked = rejected('event_not_an_object', `an event cannot be read: ${wordsOf(error)}`);
    }
    if (checked.ok) return checked.value;
    const { reason, message } = checked;
    this.#tally.refused += 1;
    this.#report({
      code: 'refused',
      reason,
      message: `a usage event is refused (${reason}): ${message}`,
      event: input,
    });
    return undefined;
  }

  #drop(): undefined {
    this.#tally.dropped += 1;
    if (!this.#isDropping) {
      const why = this.#isClosed ? 'the emitter is closed' : 'there is no room';
      this.#report({ code: 'dropped', message: `usage events are dropped: ${why}` });
    }
    this.#isDropping = true;
    return undefined;
  }
}
