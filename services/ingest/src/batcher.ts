/**
 * Collects the intakes of many jobs, or slices of them, into one insert.
 *
 * An intake is pending (collected, not yet in an insert), then in flight (in the one insert under way), then done (its
 * promise resolves). The batcher is `open`, `flushing` while a batch is in flight, and in the end `stopped`. Invariants,
 * checked at run time except the second:
 * - at most one batch is in flight;
 * - an intake's promise resolves only after the insert that holds all its rows is durable;
 * - whenever something is pending there is a timer or a batch in flight, so nothing waits for ever;
 * - nothing is added to a batcher that has stopped, and nothing is pending in it.
 */
import type { Intake } from './intake.js';
import { StateMachine } from './state.js';

export interface BatcherOptions {
  readonly maxRows: number;
  readonly flushMs: number;
  /** Flush when this many intakes wait: with every worker slot waiting, no more would come. */
  readonly maxIntakes: number;
  /** An insert holds slices of at most so many months; no limit when undefined. */
  readonly maxMonths?: number;
  /** Rejects with an AbortError once it gives up for a shutdown, and with anything else for a defect. */
  readonly store: (batch: readonly Intake[]) => Promise<void>;
}

/** A job's rows that go into one insert, all of them or those of one month. */
export interface Slice {
  readonly intake: Intake;
  /** The month that its rows lie in; undefined when they lie in few. */
  readonly month?: number;
}

interface Waiting extends Slice {
  /** Slices of a job take turns with those of others: lower ones go first. */
  readonly turn: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Batcher {
  readonly #options: BatcherOptions;
  readonly #state = new StateMachine<'open' | 'flushing' | 'stopped'>('batcher', 'open', {
    open: ['flushing', 'stopped'],
    flushing: ['open'],
    stopped: [],
  });
  #pending: Waiting[] = [];
  #pendingRows = 0;
  /** Of the slices in the latest batch. */
  #turn = 0;
  #timer: NodeJS.Timeout | undefined;
  #waitsForOthers = true;

  constructor(options: BatcherOptions) {
    this.#options = options;
  }

  /** Rows that are collected and not in an insert yet. */
  get pendingRows(): number {
    return this.#pendingRows;
  }

  /**
   * Adds the slices of one job. The first has its turn with the next batch, and each other one after the one before it.
   * @returns for each slice a promise that resolves when all its rows are durable, and rejects as the store does
   * @throws when the batcher has stopped
   */
  addAll(slices: readonly Slice[]): Promise<void>[] {
    if (this.#state.current === 'stopped') throw new Error('the batcher has stopped');
    const promises = slices.map((slice, index) => this.#enqueue(slice, this.#turn + index));
    // Without a limit of months every job is one slice, and they are in order.
    if (this.#options.maxMonths !== undefined) this.#pending.sort((a, b) => a.turn - b.turn);
    if (slices.length > 0) this.#timer ??= setTimeout(() => this.#flush(), this.#options.flushMs);
    if (slices.length > 0 && this.#isBatchFull()) this.#flush();
    return promises;
  }

  #enqueue(slice: Slice, turn: number): Promise<void> {
    this.#pendingRows += rowsOf(slice.intake);
    return new Promise((resolve, reject) => {
      this.#pending.push({ ...slice, turn, resolve, reject });
    });
  }

  /** From now on nothing waits for the rows of others: a worker that stops takes no more jobs. */
  flushNow(): void {
    this.#waitsForOthers = false;
    this.#flush();
  }

  /**
   * To be called when nothing can be added any more and every promise has settled.
   * @throws when a batch is in flight or anything is pending: its job would be lost to this worker
   */
  stop(): void {
    const { length } = this.#pending;
    if (length > 0) throw new Error(`the batcher cannot stop while ${length} of its intakes are pending`);
    this.#state.enter('stopped');
  }

  #isBatchFull(): boolean {
    if (!this.#waitsForOthers) return true;
    return this.#pendingRows >= this.#options.maxRows || this.#pending.length >= this.#options.maxIntakes;
  }

  /** Starts an insert of what is pending; while a batch is in flight, its end does so instead. */
  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#state.current === 'flushing' || this.#pending.length === 0) return;
    this.#state.enter('flushing');
    const batch = this.#takeBatch();
    this.#pendingRows -= batch.reduce((rows, { intake }) => rows + rowsOf(intake), 0);
    void this.#store(batch);
  }

  /** Whole slices up to maxRows and maxMonths, and at least one. */
  #takeBatch(): Waiting[] {
    const { maxRows, maxMonths = Number.POSITIVE_INFINITY } = this.#options;
    const months = new Set<number>();
    let rows = 0;
    const end = this.#pending.findIndex(({ intake, month }, index) => {
      rows += rowsOf(intake);
      if (month !== undefined) months.add(month);
      return index > 0 && (rows > maxRows || months.size > maxMonths);
    });
    const batch = this.#pending.splice(0, end === -1 ? this.#pending.length : end);
    this.#turn = batch.at(-1)?.turn ?? this.#turn;
    return batch;
  }

  /** A check that fails in here ends the process: no one waits for this promise. */
  async #store(batch: readonly Waiting[]): Promise<void> {
    try {
      await this.#options.store(intakesOf(batch));
      for (const { resolve } of batch) resolve();
    } catch {
      await this.#storeOneByOne(batch);
    }
    this.#state.enter('open');
    // The timer that fired while this batch was in flight is spent: what came since is overdue or due soon.
    if (this.#timer === undefined || this.#isBatchFull()) this.#flush();
    if (this.#pending.length > 0 && this.#timer === undefined && this.#state.current !== 'flushing') {
      throw new Error('the batcher has intakes pending that nothing will flush');
    }
  }

  /** After a defect each intake is stored alone, so that only the job at fault fails. */
  async #storeOneByOne(batch: readonly Waiting[]): Promise<void> {
    for (const waiting of batch) {
      await this.#options.store(intakesOf([waiting])).then(waiting.resolve, waiting.reject);
    }
  }
}

function intakesOf(batch: readonly Waiting[]): Intake[] {
  return batch.map(({ intake }) => intake);
}

function rowsOf({ accepted, rejected }: Intake): number {
  return accepted.length + rejected.length;
}
