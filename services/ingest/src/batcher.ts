/**
 * Collects the intakes of many jobs, or slices of them, into inserts.
 *
 * An intake is pending (collected, not yet in an insert), then in flight (in a running insert), then done (its promise resolves).
 * Invariants, checked at run time except the third:
 * - at most maxInFlight batches are in flight: while ClickHouse stores one, the next is encoded and sent;
 * - a batch that is not full starts only if no other is in flight, so inserts are small under light load and grow with a backlog;
 * - an intake's promise resolves only after the insert with all its rows is durable;
 * - if anything is pending, a timer runs, or the pending intakes are due and a batch is in flight, so nothing waits forever;
 * - a stopped batcher accepts nothing, and has nothing pending or in flight.
 */
import type { Intake } from './intake.js';

/** Maximum number of months of late rows in one insert. Each month makes the insert slower: docs/decisions/0006. */
const MOST_MONTHS = 12;
/** Rows wait for others this many times the duration of the latest insert, which is longer while ClickHouse is busy. */
const WAITS_PER_INSERT = 4;
/** Rows wait for others at most this many times flushMs. */
const LONGEST_WAIT = 5;

export interface BatcherOptions {
  /** Maximum number of rows per insert. A single job with more rows is one insert. */
  readonly maxRows: number;
  /** How long a row waits for others, in milliseconds; up to five times as long while inserts are slow. */
  readonly flushMs: number;
  /** Flushes once this many intakes are pending. Otherwise all worker slots could wait, and no more jobs would come. */
  readonly maxIntakes: number;
  readonly maxInFlight: number;
  /** Rejects with an AbortError if a shutdown ends the retries, and with another error for a bug. */
  readonly store: (batch: readonly Intake[]) => Promise<void>;
}

/** The rows of a job that go into one insert: all of them, or those of one month. */
export interface Slice {
  readonly intake: Intake;
  /** The month of the rows; undefined for current rows, which span few months. */
  readonly month?: number | undefined;
}

interface Waiting extends Slice {
  /** Position in line: lower numbers go first. Slices of several jobs alternate, so that no job waits for all slices of another. */
  readonly rank: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Batcher {
  readonly #options: BatcherOptions;
  #inFlight = 0;
  #hasStopped = false;
  #pending: Waiting[] = [];
  #pendingRows = 0;
  #rank = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Whether the pending slices have waited long enough, and are only waiting for the batch in flight. */
  #isDue = false;
  #isHurried = false;
  #waitMs: number;

  constructor(options: BatcherOptions) {
    this.#options = options;
    this.#waitMs = options.flushMs;
  }

  get pendingRows(): number {
    return this.#pendingRows;
  }

  /**
   * Adds the slices of one job. The first can go into the next batch, and each other slice after the one before it.
   * @returns for each slice a promise that resolves when all its rows are durable, and rejects as the store does
   * @throws if the batcher has stopped
   */
  addAll(slices: readonly Slice[]): Promise<void>[] {
    if (this.#hasStopped) throw new Error('the batcher has stopped');
    const promises = slices.map(
      (slice, index) =>
        new Promise<void>((resolve, reject) => {
          this.#pendingRows += rowsOf(slice.intake);
          this.#pending.push({ ...slice, rank: this.#rank + index, resolve, reject });
        }),
    );
    this.#pending.sort((a, b) => a.rank - b.rank);
    if (slices.length === 0) return promises;
    if (!this.#isDue) this.#timer ??= setTimeout(() => this.#onTimer(), this.#waitMs);
    this.#flush();
    return promises;
  }

  /** Stops waiting for more rows from now on, because a worker that stops takes no more jobs. */
  flushNow(): void {
    this.#isHurried = true;
    this.#flush();
  }

  #onTimer(): void {
    this.#timer = undefined;
    this.#isDue = true;
    this.#flush();
  }

  /**
   * Stops the batcher. Call it when nothing more will be added and every promise has settled.
   * @throws if a batch is in flight or anything is pending, because its job would be lost to this worker
   */
  stop(): void {
    if (this.#hasStopped) throw new Error('the batcher has stopped');
    const { length } = this.#pending;
    if (length > 0) throw new Error(`the batcher cannot stop while ${length} of its intakes are pending`);
    if (this.#inFlight > 0)
      throw new Error(`the batcher cannot stop while ${this.#inFlight} of its inserts are in flight`);
    this.#hasStopped = true;
  }

  /** Starts as many inserts as allowed. The end of each insert calls it again. */
  #flush(): void {
    while (this.#mayInsert()) void this.#store(this.#takeBatch());
  }

  #mayInsert(): boolean {
    if (this.#pending.length === 0) return false;
    if (this.#isBatchFull()) return this.#inFlight < this.#options.maxInFlight;
    return this.#inFlight === 0 && (this.#isDue || this.#isHurried);
  }

  #isBatchFull(): boolean {
    const { maxRows, maxIntakes } = this.#options;
    return this.#pendingRows >= maxRows || this.#pending.length >= maxIntakes;
  }

  /** Removes the next batch: whole slices, at least one, up to maxRows and MOST_MONTHS. The remaining slices are due immediately. */
  #takeBatch(): Waiting[] {
    const { maxRows } = this.#options;
    const months = new Set<number>();
    let rows = 0;
    const end = this.#pending.findIndex(({ intake, month }, index) => {
      rows += rowsOf(intake);
      if (month !== undefined) months.add(month);
      return index > 0 && (rows > maxRows || months.size > MOST_MONTHS);
    });
    const batch = this.#pending.splice(0, end === -1 ? this.#pending.length : end);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDue = this.#pending.length > 0;
    this.#rank = batch.at(-1)?.rank ?? this.#rank;
    this.#pendingRows -= batch.reduce((sum, { intake }) => sum + rowsOf(intake), 0);
    return batch;
  }

  /** An invariant check that fails here ends the process, because the promise is not awaited. */
  async #store(batch: readonly Waiting[]): Promise<void> {
    this.#inFlight += 1;
    const started = performance.now();
    const isStored = await this.#options.store(intakesOf(batch)).then(
      () => true,
      () => false,
    );
    if (isStored) for (const { resolve } of batch) resolve();
    else await this.#storeOneByOne(batch);
    this.#inFlight -= 1;
    const { flushMs } = this.#options;
    const taken = performance.now() - started;
    this.#waitMs = Math.min(Math.max(flushMs, WAITS_PER_INSERT * taken), LONGEST_WAIT * flushMs);
    this.#flush();
    if (this.#pending.length > 0 && this.#timer === undefined && this.#inFlight === 0) {
      throw new Error('the batcher has intakes pending that nothing will flush');
    }
  }

  /** After a bug, stores each intake alone, so that only the job at fault fails. */
  async #storeOneByOne(batch: readonly Waiting[]): Promise<void> {
    for (const waiting of batch) {
      const { resolve, reject } = waiting;
      await this.#options.store(intakesOf([waiting])).then(resolve, reject);
    }
  }
}

function intakesOf(batch: readonly Waiting[]): Intake[] {
  return batch.map(({ intake }) => intake);
}

function rowsOf({ accepted, rejected }: Intake): number {
  return accepted.length + rejected.length;
}
