/**
 * Takes events from the backlog in batches and sends each until it has succeeded, several at once. A batch never changes, so
 * however often it is sent, the same ids count once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Backlog, Batch } from './backlog.js';
import type { Tally } from './counters.js';
import { type Report, wordsOf } from './problem.js';
import { Signal } from './signal.js';
import type { Transport } from './transport.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export interface SenderLimits {
  readonly batchEvents: number;
  readonly batchBytes: number;
  readonly batchMs: number;
  readonly inFlight: number;
}

export class Sender {
  readonly #backlog: Backlog;
  readonly #transport: Transport;
  readonly #limits: SenderLimits;
  readonly #tally: Tally;
  readonly #report: Report;
  readonly #inFlight = new Set<Batch>();
  readonly #flushes = new Set<{ readonly target: number; readonly end: (isSent: boolean) => void }>();
  readonly #news = new Signal();
  readonly #settled = new Signal();
  readonly #stopped = new AbortController();
  /** Events with a lower number are to be sent now, in batches of any size. */
  #due: number;
  #timer: NodeJS.Timeout | undefined;
  #isWoken = false;
  #isAway = false;

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

  /** Resolves when a batch was sent, and at the stop. */
  settled(): Promise<void> {
    return this.#settled.wait();
  }

  /** Breaks off what is being sent. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#stopped.abort();
    this.#transport.close();
    this.#news.notify();
    this.#settled.notify();
    for (const { end } of this.#flushes) end(false);
  }

  get #isStopped(): boolean {
    return this.#stopped.signal.aborted;
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
    const limits = { events: this.#limits.batchEvents, bytes: this.#limits.batchBytes };
    while (!this.#isStopped) {
      // Asked for before looking, so that nothing is missed that happens meanwhile.
      const news = this.#news.wait();
      while (!this.#isStopped && this.#inFlight.size < this.#limits.inFlight && this.#hasWork) {
        const batch = await this.#backlog.take(limits);
        if (batch) void this.#deliver(batch);
        // Unreadable events count as sent.
        this.#endFlushes();
        if (batch === undefined) break;
      }
      await news;
    }
  }

  get #hasWork(): boolean {
    return this.#backlog.taken < this.#due || this.#fillsBatch;
  }

  async #deliver(batch: Batch): Promise<void> {
    this.#inFlight.add(batch);
    for (let pause = FIRST_PAUSE_MS; !(await this.#isSent(batch)); pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      const jitter = 0.5 + Math.random() / 2;
      // An abort ends the pause, and then the loop.
      await sleep(pause * jitter, undefined, { signal: this.#stopped.signal }).catch(() => undefined);
      if (this.#isStopped) return;
      this.#tally.retried += batch.texts.length;
    }
    // After the stop another process may have the spool.
    if (this.#isStopped) return;
    this.#inFlight.delete(batch);
    this.#backlog.settle(batch);
    this.#tally.sent += batch.texts.length;
    this.#isAway = false;
    this.#endFlushes();
    this.#settled.notify();
    this.#news.notify();
  }

  async #isSent(batch: Batch): Promise<boolean> {
    try {
      await this.#transport.send(batch.texts);
      return true;
    } catch (error) {
      if (!this.#isAway && !this.#isStopped) {
        const message = `usage events cannot be sent, and wait: ${wordsOf(error)}`;
        this.#report({ code: 'unreachable', message, cause: error });
      }
      this.#isAway = true;
      return false;
    }
  }

  #endFlushes(): void {
    if (this.#flushes.size === 0) return;
    const oldestUnsent = Math.min(this.#backlog.taken, ...[...this.#inFlight].map(({ first }) => first));
    for (const { target, end } of this.#flushes) if (oldestUnsent >= target) end(true);
  }
}
