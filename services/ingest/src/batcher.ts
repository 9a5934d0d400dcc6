/**
 * Collects the intakes of many jobs into one insert.
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
  /** Rejects with an AbortError once it gives up for a shutdown, and with anything else for a defect. */
  readonly store: (batch: readonly Intake[]) => Promise<void>;
}

interface Waiting {
  readonly intake: Intake;
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
   * Resolves when all rows of the intake are durable; rejects as the store does.
   * @throws when the batcher has stopped
   */
  add(intake: Intake): Promise<void> {
    if (this.#state.current === 'stopped') throw new Error('the batcher has stopped');
    return new Promise((resolve, reject) => {
      this.#pending.push({ intake, resolve, reject });
      this.#pendingRows += rowsOf(intake);
      this.#timer ??= setTimeout(() => this.#flush(), this.#options.flushMs);
      if (this.#isBatchFull()) this.#flush();
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

  /** Whole intakes up to maxRows, and at least one. */
  #takeBatch(): Waiting[] {
    let rows = 0;
    const end = this.#pending.findIndex(({ intake }, index) => {
      rows += rowsOf(intake);
      return index > 0 && rows > this.#options.maxRows;
    });
    return this.#pending.splice(0, end === -1 ? this.#pending.length : end);
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
