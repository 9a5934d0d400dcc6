/**
 * Takes events from the backlog in batches and sends each until it has succeeded, several at once. What is sent never changes, so
 * however often it is sent, the same ids count once.
 *
 * A batch is divided by lane: where each account has its own key, one may be refused. Its events then wait aside, up to a limit,
 * and those of others are sent.
 */
import type { Backlog, Batch } from './backlog.js';
import type { Tally } from './counters.js';
import { Gate, type Parcel } from './gate.js';
import { type Report, wordsOf } from './problem.js';
import { Signal } from './signal.js';
import { NotTaken, type Refusal, type Transport } from './transport.js';

/** While nobody answers, and while the events of an account are not taken. */
const LONGEST_AWAY_MS = 2_000;
const LONGEST_HELD_MS = 60_000;
/** That a busy service asks for a shorter pause is not reported. */
const TROUBLE_FROM_MS = 5_000;

export interface SenderLimits {
  readonly batchEvents: number;
  readonly batchBytes: number;
  readonly batchMs: number;
  readonly inFlight: number;
  /** With more on its way or held back, nothing more is taken. */
  readonly memoryBytes: number;
}

export class Sender {
  readonly #backlog: Backlog;
  readonly #transport: Transport;
  readonly #limits: SenderLimits;
  readonly #tally: Tally;
  readonly #report: Report;
  /** Those that are taken and not settled, oldest first. */
  readonly #parcels = new Set<Parcel>();
  /** Those of them that can be sent at once. */
  readonly #ready: Parcel[] = [];
  /** Closed while nobody answers. */
  readonly #door = new Gate(LONGEST_AWAY_MS, (parcels) => this.#resume(parcels));
  /** Of the lanes whose events are not taken. */
  readonly #lanes = new Map<string, Gate>();
  readonly #flushes = new Set<{ readonly target: number; readonly end: (isSent: boolean) => void }>();
  readonly #news = new Signal();
  readonly #settled = new Signal();
  #sending = 0;
  /** Of all parcels. */
  #bytes = 0;
  /** Events with a lower number are to be sent now, in batches of any size. */
  #due: number;
  #timer: NodeJS.Timeout | undefined;
  #isWoken = false;
  #isStopped = false;

  constructor(backlog: Backlog, transport: Transport, limits: SenderLimits, tally: Tally, report: Report) {
    this.#backlog = backlog;
    this.#transport = transport;
    this.#limits = limits;
    this.#tally = tally;
    this.#report = report;
    // What was found in the spool.
    this.#due = backlog.added;
    void this.#run();
  }

  /** An event was added. Nothing is sent before the caller is done: `record` has no time for it. */
  added(): void {
    this.#timer ??= setTimeout(() => this.#sendAll(), this.#limits.batchMs);
    if (this.#isWoken || !this.#fillsBatch) return;
    this.#isWoken = true;
    setImmediate(() => {
      this.#isWoken = false;
      this.#news.notify();
    });
  }

  /** Sends what there is now. @returns whether all of it was sent within the time */
  flush(timeoutMs: number): Promise<boolean> {
    const target = this.#backlog.added;
    this.#sendAll();
    return new Promise((resolve) => {
      const end = (isSent: boolean) => {
        clearTimeout(timer);
        this.#flushes.delete(flush);
        resolve(isSent);
      };
      const flush = { target, end };
      const timer = setTimeout(() => end(false), timeoutMs);
      this.#flushes.add(flush);
      this.#endFlushes();
    });
  }

  /** Resolves when events were sent, and at the stop. */
  settled(): Promise<void> {
    return this.#settled.wait();
  }

  /** Breaks off what is being sent. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#isStopped = true;
    for (const gate of [this.#door, ...this.#lanes.values()]) gate.stop();
    this.#transport.close();
    this.#news.notify();
    this.#settled.notify();
    for (const { end } of this.#flushes) end(false);
  }

  get #fillsBatch(): boolean {
    const { added, taken, waitingBytes } = this.#backlog;
    return added - taken >= this.#limits.batchEvents || waitingBytes >= this.#limits.batchBytes;
  }

  #sendAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#due = this.#backlog.added;
    this.#news.notify();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      // Asked for before looking, so that nothing is missed that happens meanwhile.
      const news = this.#news.wait();
      while (!this.#isStopped && !this.#door.isClosed && this.#sending < this.#limits.inFlight) {
        const parcel = this.#ready.shift();
        if (parcel) this.#dispatch(parcel);
        else if (!this.#mayTake || !(await this.#take())) break;
      }
      await news;
    }
  }

  get #mayTake(): boolean {
    if (this.#bytes >= this.#limits.memoryBytes) return false;
    return this.#backlog.taken < this.#due || this.#fillsBatch;
  }

  /** Takes the next batch. @returns false when there is none */
  async #take(): Promise<boolean> {
    const limits = { events: this.#limits.batchEvents, bytes: this.#limits.batchBytes };
    const batch = await this.#backlog.take(limits);
    for (const parcel of batch ? this.#divide(batch) : []) {
      this.#parcels.add(parcel);
      this.#bytes += parcel.bytes;
      this.#ready.push(parcel);
    }
    // Unreadable events count as sent.
    this.#endFlushes();
    return batch !== undefined;
  }

  #divide(batch: Batch): Iterable<Parcel> {
    const lanes = new Map<string, Parcel & { texts: string[]; bytes: number }>();
    for (const text of batch.texts) {
      const lane = this.#transport.laneOf(text);
      const parcel = lanes.get(lane) ?? { ...batch, lane, texts: [], bytes: 0, isTried: false };
      parcel.texts.push(text);
      parcel.bytes += Buffer.byteLength(text);
      lanes.set(lane, parcel);
    }
    return lanes.values();
  }

  #dispatch(parcel: Parcel): void {
    const gate = this.#lanes.get(parcel.lane);
    if (gate?.isClosed) gate.hold(parcel);
    else void this.#deliver(parcel);
  }

  async #deliver(parcel: Parcel): Promise<void> {
    this.#sending += 1;
    if (parcel.isTried) this.#tally.retried += parcel.texts.length;
    parcel.isTried = true;
    try {
      const refusals = await this.#transport.send(parcel.texts, parcel.lane);
      // After the stop another process may have the spool.
      if (!this.#isStopped) this.#settle(parcel, refusals);
    } catch (error) {
      if (!this.#isStopped) this.#failed(parcel, error);
    }
    this.#sending -= 1;
    this.#news.notify();
  }

  #failed(parcel: Parcel, error: unknown): void {
    const isAnswer = error instanceof NotTaken;
    const isHeld = isAnswer && !error.isAway;
    const gate = isHeld ? this.#gateOf(parcel.lane) : this.#door;
    gate.hold(parcel);
    const pauseMs = gate.close(isAnswer ? error.pauseMs : 0);
    if (gate.isReported || (isHeld && pauseMs < TROUBLE_FROM_MS)) return;
    gate.isReported = true;
    const events = isHeld ? `usage events of the account ${parcel.lane}` : 'usage events';
    const message = `${events} cannot be sent, and wait: ${wordsOf(error)}`;
    this.#report({ code: isHeld ? 'held' : 'unreachable', message, cause: error });
  }

  #gateOf(lane: string): Gate {
    const gate = this.#lanes.get(lane) ?? new Gate(LONGEST_HELD_MS, (parcels) => this.#resume(parcels));
    this.#lanes.set(lane, gate);
    return gate;
  }

  #resume(parcels: readonly Parcel[]): void {
    for (const parcel of parcels) this.#ready.push(parcel);
    this.#news.notify();
  }

  #settle(parcel: Parcel, refusals: readonly Refusal[]): void {
    const gate = this.#lanes.get(parcel.lane);
    for (const passed of [this.#door, gate]) passed?.reset();
    if (!gate?.isClosed) this.#lanes.delete(parcel.lane);
    this.#tally.sent += parcel.texts.length - refusals.length;
    this.#tally.refused += refusals.length;
    for (const { index, reason, message } of refusals) {
      const event = JSON.parse(parcel.texts[index] ?? 'null');
      this.#report({ code: 'refused', reason, message: `a usage event is refused (${reason}): ${message}`, event });
    }
    this.#parcels.delete(parcel);
    this.#bytes -= parcel.bytes;
    this.#backlog.settle(parcel);
    this.#endFlushes();
    this.#settled.notify();
  }

  #endFlushes(): void {
    if (this.#flushes.size === 0) return;
    const [oldest] = this.#parcels;
    const oldestUnsent = oldest?.first ?? this.#backlog.taken;
    for (const { target, end } of this.#flushes) if (oldestUnsent >= target) end(true);
  }
}
