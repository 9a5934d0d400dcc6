/**
 * Collects the intakes of many jobs into one insert.
 *
 * States of an intake: pending (collected, not yet in an insert) → in flight (in the one insert under way) → done (its
 * promise resolves). Invariants:
 * - at most one batch is in flight;
 * - an intake's promise resolves only after the insert that holds all its rows is durable;
 * - whenever something is pending there is a timer or a batch in flight, so nothing waits for ever.
 */
import type { Intake } from './intake.js';

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
  #pending: Waiting[] = [];
  #pendingRows = 0;
  #inFlight = false;
  #timer: NodeJS.Timeout | undefined;
  #isHurried = false;

  constructor(options: BatcherOptions) {
    this.#options = options;
  }

  /** Rows that are collected and not in an insert yet. */
  get pendingRows(): number {
    return this.#pendingRows;
  }

  /** Resolves when all rows of the intake are durable; rejects as the store does. */
  add(intake: Intake): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ intake, resolve, reject });
      this.#pendingRows += rowsOf(intake);
      this.#timer ??= setTimeout(() => this.#flush(), this.#options.flushMs);
      if (this.#isBatchFull()) this.#flush();
    });
  }

  /** From now on nothing waits for the rows of others: a worker that stops takes no more. */
  hurry(): void {
    this.#isHurried = true;
    this.#flush();
  }

  #isBatchFull(): boolean {
    if (this.#isHurried) return true;
    return this.#pendingRows >= this.#options.maxRows || this.#pending.length >= this.#options.maxIntakes;
  }

  /** Sends what is pending on its way; while a batch is in flight, its end does so instead. */
  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#inFlight || this.#pending.length === 0) return;
    const batch = this.#takeBatch();
    this.#pendingRows -= batch.reduce((rows, { intake }) => rows + rowsOf(intake), 0);
    this.#inFlight = true;
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

  async #store(batch: readonly Waiting[]): Promise<void> {
    try {
      await this.#options.store(intakesOf(batch));
      for (const { resolve } of batch) resolve();
    } catch {
      await this.#storeOneByOne(batch);
    }
    this.#inFlight = false;
    // The timer that fired while this batch was in flight is spent: what came since is overdue or due soon.
    if (this.#timer === undefined || this.#isBatchFull()) this.#flush();
  }

  /** Only the culprit's job may suffer from a defect: each intake meets it, or not, on its own. */
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
