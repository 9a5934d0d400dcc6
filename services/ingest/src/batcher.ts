/**
 * Collects the intakes of many jobs, or slices of them, into inserts.
 *
 * An intake is pending (collected, not yet in an insert), then in flight (in an insert under way), then done (its promise
 * resolves). Invariants, checked at run time except the third:
 * - at most maxInFlight batches are in flight: while ClickHouse stores one, the next is encoded and sent;
 * - a batch that is not full begins alone, so inserts are small when little arrives and grow with a backlog;
 * - an intake's promise resolves only after the insert that holds all its rows is durable;
 * - whenever something is pending there is a timer, or it is due and a batch is in flight, so nothing waits for ever;
 * - nothing is added to a batcher that has stopped, and nothing is pending or in flight in it.
 */
import type { Intake } from './intake.js';

/** The most months of late rows in one insert. The time it takes grows with each: docs/decisions/0006. */
const MOST_MONTHS = 12;
/** How long rows wait for others: so many times as long as the latest insert took, which a busy ClickHouse makes longer. */
const WAITS_PER_INSERT = 4;
/** The longest wait of rows for others: so many times flushMs. */
const LONGEST_WAIT = 5;

export interface BatcherOptions {
  /** The most rows of an insert, if no job alone has more. */
  readonly maxRows: number;
  /** How long a row waits for others, in milliseconds; up to five times as long when inserts take long. */
  readonly flushMs: number;
  /** Flush when this many intakes wait: with every worker slot waiting, no more would come. */
  readonly maxIntakes: number;
  readonly maxInFlight: number;
  /** Rejects with an AbortError once it gives up for a shutdown, and with anything else for a defect. */
  readonly store: (batch: readonly Intake[]) => Promise<void>;
}

/** A job's rows that go into one insert, all of them or those of one month. */
export interface Slice {
  readonly intake: Intake;
  /** The month that its rows lie in; undefined when they lie in few. */
  readonly month?: number | undefined;
}

interface Waiting extends Slice {
  /** Slices of a job take turns with those of others: lower ones go first. */
  readonly turn: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Batcher {
  readonly #options: BatcherOptions;
  #inFlight = 0;
  #hasStopped = false;
  #pending: Waiting[] = [];
  #pendingRows = 0;
  /** The turn of the last slice in the latest batch. */
  #turn = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Whether what is pending need not wait for others any more, only for its turn. */
  #isDue = false;
  #isHurried = false;
  #waitMs: number;

  constructor(options: BatcherOptions) {
    this.#options = options;
    this.#waitMs = options.flushMs;
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
    if (this.#hasStopped) throw new Error('the batcher has stopped');
    const promises = slices.map(
      (slice, index) =>
        new Promise<void>((resolve, reject) => {
          this.#pendingRows += rowsOf(slice.intake);
          this.#pending.push({ ...slice, turn: this.#turn + index, resolve, reject });
        }),
    );
    this.#pending.sort((a, b) => a.turn - b.turn);
    if (slices.length === 0) return promises;
    if (!this.#isDue) this.#timer ??= setTimeout(() => this.#onTimer(), this.#waitMs);
    this.#flush();
    return promises;
  }

  /** From now on nothing waits for the rows of others: a worker that stops takes no more jobs. */
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
   * To be called when nothing can be added any more and every promise has settled.
   * @throws when a batch is in flight or anything is pending: its job would be lost to this worker
   */
  stop(): void {
    if (this.#hasStopped) throw new Error('the batcher has stopped');
    const { length } = this.#pending;
    if (length > 0) throw new Error(`the batcher cannot stop while ${length} of its intakes are pending`);
    if (this.#inFlight > 0)
      throw new Error(`the batcher cannot stop while ${this.#inFlight} of its inserts are in flight`);
    this.#hasStopped = true;
  }

  /** Starts inserts of what is pending as far as it may; the end of each insert goes on. */
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

  /** Whole slices up to maxRows and MOST_MONTHS, and at least one. What it leaves is due, like what it takes. */
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
    this.#turn = batch.at(-1)?.turn ?? this.#turn;
    this.#pendingRows -= batch.reduce((sum, { intake }) => sum + rowsOf(intake), 0);
    return batch;
  }

  /** A check that fails in here ends the process: no one waits for this promise. */
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

  /** After a defect each intake is stored alone, so that only the job at fault fails. */
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
