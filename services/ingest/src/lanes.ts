/**
 * Separates late rows (of hours that ended more than `sealDelayMs` ago) from current rows, so that late rows do not delay current ones.
 *
 * ClickHouse writes one part (a set of files) for each month in an insert, and syncs each part to disk. Inserting 5,000 events from all
 * months since 1970 takes many seconds. So late rows are split into slices by month. An insert of late rows has only a few months, and
 * slices of several jobs alternate. A job is stored when all its slices are stored. Each slice goes through all steps of
 * `EventStore.store()`.
 */
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { Batcher, type BatcherOptions, type Slice } from './batcher.js';
import type { PreparedJob } from './intake.js';

/** Maximum age of current rows, even if hours are sealed later than this. So current rows span at most three months. */
const LONGEST_CURRENT_MS = 31 * MS_PER_DAY;

/** While ClickHouse stores one insert, the next is encoded and sent. A third insert would only wait in ClickHouse and take memory. */
const CURRENT_IN_FLIGHT = 2;
/** Late inserts run one at a time. Each writes many parts, so two inserts would compete for the same disk. */
const LATE_IN_FLIGHT = 1;

export interface LanesOptions extends Omit<BatcherOptions, 'maxInFlight'> {
  readonly sealDelayMs: number;
}

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

  get pendingRows(): number {
    return this.#current.pendingRows + this.#late.pendingRows;
  }

  split(prepared: PreparedJob, now: EpochMs): Split {
    return separateLate(prepared, currentSince(now, this.#sealDelayMs));
  }

  /** Resolves when all rows are durable. If an insert fails, rejects with its error after all inserts of the job have ended. */
  async add({ current, late }: Split): Promise<void> {
    const outcomes = await Promise.allSettled([...this.#current.addAll(current), ...this.#late.addAll(late)]);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  flushNow(): void {
    this.#current.flushNow();
    this.#late.flushNow();
  }

  stop(): void {
    this.#current.stop();
    this.#late.stop();
  }
}

/** Returns the start of the unsealed hours by the local clock. Earlier rows are late. A wrong clock makes inserts slower, but not wrong. */
export function currentSince(now: EpochMs, sealDelayMs: number): EpochMs {
  const due = now - sealDelayMs;
  return Math.max(due - (due % MS_PER_HOUR), now - LONGEST_CURRENT_MS);
}

/**
 * Separates the rows before `since`. A rejected event is late if its job was received before `since`, because the table of rejected events
 * is partitioned by receipt time.
 */
export function separateLate(prepared: PreparedJob, since: EpochMs): Split {
  const { job, accepted, rejected } = prepared;
  const hasLateRejections = rejected.length > 0 && job.receivedAt < since;
  if (accepted.earliest >= since && !hasLateRejections) return { current: [{ prepared }], late: [] };

  const currentRows: number[] = [];
  const months = new Map<number, { rows: number[]; rejected: PreparedJob['rejected'] }>();
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
  if (hasLateRejections) sliceOf(job.receivedAt).rejected = rejected;

  const current = { job, accepted: accepted.pick(currentRows), rejected: hasLateRejections ? [] : rejected };
  return {
    current: current.accepted.length + current.rejected.length > 0 ? [{ prepared: current }] : [],
    late: [...months].map(([month, { rows, rejected }]) => ({
      month,
      prepared: { job, accepted: accepted.pick(rows), rejected },
    })),
  };
}

function monthOf(time: EpochMs): number {
  const date = new Date(time);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}
