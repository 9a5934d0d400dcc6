/**
 * Two lanes to ClickHouse, so that late events do not hold up current ones.
 *
 * An insert makes a part in each month that it has rows of, each with an fsync: a job of 5,000 events over all months since
 * 1970 takes many seconds. So late rows are cut into slices by
 * month, an insert of theirs has a few months only, and several late jobs take turns, a month each. A job is stored when all
 * its slices are; each goes through all steps of `store()`.
 */
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { Batcher, type BatcherOptions, type Slice } from './batcher.js';
import type { Intake } from './intake.js';

/** However late hours are sealed: current rows lie in three months at most. */
const LONGEST_CURRENT_MS = 31 * MS_PER_DAY;

/** While ClickHouse stores one insert, the next is encoded and sent. A third would wait there, and take memory. */
const CURRENT_IN_FLIGHT = 2;
/** An insert makes a part in each month that it has rows of: two would wait for the same disk. */
const LATE_IN_FLIGHT = 1;

export interface LanesOptions extends Omit<BatcherOptions, 'maxInFlight'> {
  /** How long after its end an hour is sealed. */
  readonly sealDelayMs: number;
}

/** The rows of a job by the lane that they take. */
export interface Split {
  readonly current: readonly Slice[];
  readonly late: readonly Slice[];
}

export class Lanes {
  readonly #current: Batcher;
  readonly #late: Batcher;
  readonly #sealDelayMs: number;

  constructor({ sealDelayMs, ...options }: LanesOptions) {
    this.#current = new Batcher({ ...options, maxInFlight: CURRENT_IN_FLIGHT });
    this.#late = new Batcher({ ...options, maxInFlight: LATE_IN_FLIGHT });
    this.#sealDelayMs = sealDelayMs;
  }

  /** Rows that are collected and not in an insert yet. */
  get pendingRows(): number {
    return this.#current.pendingRows + this.#late.pendingRows;
  }

  split(intake: Intake, now: EpochMs): Split {
    return splitByAge(intake, currentSince(now, this.#sealDelayMs));
  }

  /**
   * Resolves when all rows are durable, and rejects as the store does, when nothing of the job is under way any more.
   * @throws when the lanes have stopped
   */
  async add({ current, late }: Split): Promise<void> {
    const outcomes = await Promise.allSettled([...this.#current.addAll(current), ...this.#late.addAll(late)]);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  flushNow(): void {
    this.#current.flushNow();
    this.#late.flushNow();
  }

  /** @throws as {@link Batcher.stop} does */
  stop(): void {
    this.#current.stop();
    this.#late.stop();
  }
}

/** The first instant of the hours that are not sealed yet, by the clock. A clock that is wrong costs time alone. */
export function currentSince(now: EpochMs, sealDelayMs: number): EpochMs {
  const due = now - sealDelayMs;
  return Math.max(due - (due % MS_PER_HOUR), now - LONGEST_CURRENT_MS);
}

/** A rejected event is as old as its job, because its table is divided by that time. */
export function splitByAge(intake: Intake, since: EpochMs): Split {
  const { job, accepted, rejected } = intake;
  const areRejectedLate = rejected.length > 0 && job.receivedAt < since;
  if (accepted.earliest >= since && !areRejectedLate) return { current: [{ intake }], late: [] };

  const currentRows: number[] = [];
  const months = new Map<number, { rows: number[]; rejected: Intake['rejected'] }>();
  const sliceOf = (time: EpochMs) => {
    const month = monthOf(time);
    const slice = months.get(month) ?? { rows: [], rejected: [] };
    months.set(month, slice);
    return slice;
  };
  for (let row = 0; row < accepted.length; row += 1) {
    const timestamp = accepted.timestampOf(row);
    const rows = timestamp < since ? sliceOf(timestamp).rows : currentRows;
    rows.push(row);
  }
  if (areRejectedLate) sliceOf(job.receivedAt).rejected = rejected;

  const current = { job, accepted: accepted.pick(currentRows), rejected: areRejectedLate ? [] : rejected };
  return {
    current: current.accepted.length + current.rejected.length > 0 ? [{ intake: current }] : [],
    late: [...months].map(([month, { rows, rejected }]) => ({
      month,
      intake: { job, accepted: accepted.pick(rows), rejected },
    })),
  };
}

/** Counted from the year 0. */
function monthOf(time: EpochMs): number {
  const date = new Date(time);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}
