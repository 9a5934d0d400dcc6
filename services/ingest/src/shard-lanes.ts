/**
 * Lanes to each shard of ClickHouse, so that one that is slow or away holds up no rows of the others. A job with events of
 * several shards is stored when each of them has its part. On one server there is one shard.
 */
import type { EpochMs } from '@meterline/catalog';
import type { RejectedEvent } from '@meterline/warehouse';
import type { Ending } from './batcher.js';
import type { Intake } from './intake.js';
import type { Lanes, Split } from './lanes.js';

/** What a job has for one shard. */
export interface ShardPart extends Split {
  readonly shard: number;
}

export interface ShardLanesOptions {
  /** Those of each shard. */
  readonly lanes: readonly Lanes[];
  /** The index of an account's shard. */
  readonly indexOf: (account: string) => number;
  /** Whether rows wait for the return of this shard. */
  readonly isAway: (shard: number) => boolean;
}

export class ShardLanes {
  readonly #lanes: readonly Lanes[];
  readonly #indexOf: ShardLanesOptions['indexOf'];
  readonly #isAway: ShardLanesOptions['isAway'];

  constructor({ lanes, indexOf, isAway }: ShardLanesOptions) {
    this.#lanes = lanes;
    this.#indexOf = indexOf;
    this.#isAway = isAway;
  }

  get count(): number {
    return this.#lanes.length;
  }

  /** Rows that are collected and not in an insert yet. */
  get pendingRows(): number {
    return this.#lanes.reduce((sum, { pendingRows }) => sum + pendingRows, 0);
  }

  split(intake: Intake, now: EpochMs): ShardPart[] {
    const parts = this.count === 1 ? [{ shard: 0, intake }] : byShard(intake, this.#indexOf);
    return parts.map(({ shard, intake: part }) => ({ shard, ...this.#lanesOf(shard).split(part, now) }));
  }

  /** Whether a part must wait for the return of its shard, while other shards could take other jobs. */
  mustWait(parts: readonly ShardPart[]): boolean {
    if (!parts.some(({ shard }) => this.#isAway(shard))) return false;
    return this.#lanes.some((_, shard) => !this.#isAway(shard));
  }

  /** Resolves and rejects as {@link Lanes.add}, for the parts of one job. */
  async add(parts: readonly ShardPart[]): Promise<void> {
    const outcomes = await Promise.allSettled(parts.map((part) => this.#lanesOf(part.shard).add(part)));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  /** As {@link Lanes.addCurrent}, on one server. @returns false, and takes nothing, when there are several */
  addCurrent(intake: Intake, now: EpochMs, ending: Ending): boolean {
    return this.count === 1 && this.#lanesOf(0).addCurrent(intake, now, ending);
  }

  /** @throws RangeError for a shard that there is not: nothing of it may count as stored */
  #lanesOf(shard: number): Lanes {
    const lanes = this.#lanes[shard];
    if (!lanes) throw new RangeError(`there is no shard ${shard}`);
    return lanes;
  }

  flushNow(): void {
    for (const lanes of this.#lanes) lanes.flushNow();
  }

  /** @throws as {@link Lanes.stop} does */
  stop(): void {
    for (const lanes of this.#lanes) lanes.stop();
  }
}

interface Rows {
  readonly accepted: number[];
  readonly rejected: RejectedEvent[];
}

/** A refused event goes where the account is that it claims, which may be none. */
function byShard({ job, accepted, rejected }: Intake, indexOf: (account: string) => number) {
  const rows = new Map<number, Rows>();
  const rowsOf = (account: string): Rows => {
    const shard = indexOf(account);
    const known = rows.get(shard) ?? { accepted: [], rejected: [] };
    rows.set(shard, known);
    return known;
  };
  // Hashing an account takes some microseconds, and most jobs have few of them.
  const known = new Map<string, Rows>();
  for (let row = 0; row < accepted.length; row += 1) {
    const account = accepted.accountIdOf(row);
    const ofAccount = known.get(account) ?? rowsOf(account);
    known.set(account, ofAccount);
    ofAccount.accepted.push(row);
  }
  for (const event of rejected) rowsOf(event.accountId).rejected.push(event);
  return [...rows].map(([shard, { accepted: picked, rejected }]) => ({
    shard,
    intake: { job, accepted: rows.size === 1 ? accepted : accepted.pick(picked), rejected },
  }));
}
