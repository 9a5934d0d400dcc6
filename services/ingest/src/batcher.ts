/**
 * Collects the rows of many jobs into inserts. A job has one or more slices of rows (see lanes.ts). An insert takes whole slices.
 *
 * A slice is first pending, then in flight while its insert runs. Then its promise resolves. Invariants, all checked at run time except the
 * third:
 * - At most `maxInFlight` batches are in flight. While ClickHouse stores one batch, the next is encoded and sent.
 * - A batch that is not full starts only if no other batch is in flight. So inserts are small under light load and grow with a backlog.
 * - The promise of a slice resolves only after the insert with all its rows is durable.
 * - If a slice is pending, then a timer runs, or the pending slices are due and a batch is in flight. So no slice waits forever.
 * - A stopped batcher accepts nothing, and has nothing pending or in flight.
 */
import type { PreparedJob } from './intake.js';

/** Maximum number of months of late rows in one insert. Each month makes the insert slower (docs/decisions/0006). */
const MAX_MONTHS = 12;
/** How long rows wait for more rows, as a multiple of the duration of the latest insert. Inserts take longer while ClickHouse is busy. */
const WAITS_PER_INSERT = 4;
/** Upper limit of that wait, as a multiple of `flushMs`. */
const LONGEST_WAIT = 5;

export interface BatcherOptions {
  /** Maximum number of rows per insert. A single job with more rows becomes an insert by itself. */
  readonly maxRows: number;
  /** How long a row waits for more rows; up to five times as long while inserts are slow. */
  readonly flushMs: number;
  /** Maximum number of pending slices before a flush. Without this limit, all concurrent jobs could wait for more jobs that never come. */
  readonly maxSlices: number;
  readonly maxInFlight: number;
  /** Stores a batch. Rejects with an AbortError if a shutdown ends the retries, and with another error if there is a bug. */
  readonly store: (batch: readonly PreparedJob[]) => Promise<void>;
}

/** The rows of a job that go into one insert: all rows, or the rows of one month. */
export interface Slice {
  readonly prepared: PreparedJob;
  /** The month of late rows, which are split by month. Undefined for current rows, which span few months. */
  readonly month?: number | undefined;
}

interface Waiting extends Slice {
  /** Slices with a lower rank are inserted first. Slices of several jobs alternate, so that no job waits for all slices of another job. */
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
  /** True if the pending slices have waited long enough and now only wait for the batch in flight. */
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
   * Adds the slices of one job. The first can go into the next batch, and each later slice into a later batch. The returned promises, one
   * per slice, resolve when the slice is durable and reject with the error of `store`.
   */
  addAll(slices: readonly Slice[]): Promise<void>[] {
    if (this.#hasStopped) throw new Error('the batcher has stopped');
    const promises = slices.map(
      (slice, index) =>
        new Promise<void>((resolve, reject) => {
          this.#pendingRows += rowsOf(slice.prepared);
          this.#pending.push({ ...slice, rank: this.#rank + index, resolve, reject });
        }),
    );
    this.#pending.sort((a, b) => a.rank - b.rank);
    if (slices.length === 0) return promises;
    if (!this.#isDue) this.#timer ??= setTimeout(() => this.#onTimer(), this.#waitMs);
    this.#flush();
    return promises;
  }

  /** From now on, rows do not wait for more rows, because a worker that is stopping takes no more jobs. */
  flushNow(): void {
    this.#isHurried = true;
    this.#flush();
  }

  #onTimer(): void {
    this.#timer = undefined;
    this.#isDue = true;
    this.#flush();
  }

  /** Call this only after every promise has settled. Throws if rows are pending or in flight, because stopping would lose their jobs. */
  stop(): void {
    if (this.#hasStopped) throw new Error('the batcher has stopped');
    const { length } = this.#pending;
    if (length > 0) throw new Error(`the batcher cannot stop while ${length} of its slices are pending`);
    if (this.#inFlight > 0)
      throw new Error(`the batcher cannot stop while ${this.#inFlight} of its inserts are in flight`);
    this.#hasStopped = true;
  }

  #flush(): void {
    while (this.#mayInsert()) void this.#store(this.#takeBatch());
  }

  #mayInsert(): boolean {
    if (this.#pending.length === 0) return false;
    if (this.#isBatchFull()) return this.#inFlight < this.#options.maxInFlight;
    return this.#inFlight === 0 && (this.#isDue || this.#isHurried);
  }

  #isBatchFull(): boolean {
    const { maxRows, maxSlices } = this.#options;
    return this.#pendingRows >= maxRows || this.#pending.length >= maxSlices;
  }

  /** Takes whole slices, at least one, up to `maxRows` and MAX_MONTHS. The remaining slices are due immediately. */
  #takeBatch(): Waiting[] {
    const { maxRows } = this.#options;
    const months = new Set<number>();
    let rows = 0;
    const end = this.#pending.findIndex(({ prepared, month }, index) => {
      rows += rowsOf(prepared);
      if (month !== undefined) months.add(month);
      return index > 0 && (rows > maxRows || months.size > MAX_MONTHS);
    });
    const batch = this.#pending.splice(0, end === -1 ? this.#pending.length : end);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDue = this.#pending.length > 0;
    this.#rank = batch.at(-1)?.rank ?? this.#rank;
    this.#pendingRows -= batch.reduce((sum, { prepared }) => sum + rowsOf(prepared), 0);
    return batch;
  }

  /** Nothing awaits this promise, so a failed invariant check ends the process. */
  async #store(batch: readonly Waiting[]): Promise<void> {
    this.#inFlight += 1;
    const started = performance.now();
    const isStored = await this.#options.store(preparedJobsOf(batch)).then(
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
      throw new Error('the batcher has slices pending that nothing will flush');
    }
  }

  /** Stores each slice alone after a bug, so that only the job that triggers the bug fails. */
  async #storeOneByOne(batch: readonly Waiting[]): Promise<void> {
    for (const waiting of batch) {
      const { resolve, reject } = waiting;
      await this.#options.store(preparedJobsOf([waiting])).then(resolve, reject);
    }
  }
}

function preparedJobsOf(batch: readonly Waiting[]): PreparedJob[] {
  return batch.map(({ prepared }) => prepared);
}

function rowsOf({ accepted, rejected }: PreparedJob): number {
  return accepted.length + rejected.length;
}
