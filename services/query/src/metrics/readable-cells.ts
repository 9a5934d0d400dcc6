/** Which cells a question may read: what a query process knows of watermarks, marks, and months whose events were dropped. */
import type { Window } from '@meterline/catalog';
import { shared } from '@meterline/service';
import {
  NO_CELLS,
  readRetentionBounds,
  readStaleHours,
  readWatermarks,
  type SealedUntil,
  type StaleHours,
  shardIndex,
  shardNumber,
  type Warehouse,
} from '@meterline/warehouse';
import { LRUCache } from 'lru-cache';
import { type KnownCells, withoutEventsBefore } from './kept-events.js';
import type { Asker } from './pages.js';

/** To be called for each question, after its stamps were read: an hour may have become stale since the one before. */
export type ReadCells = (asker: Asker, window: Window) => Promise<KnownCells>;

/** From the events alone, as far as there are any: slower, and what the cells are compared with. */
export function createEventsReader(shards = 1): ReadCells {
  return async ({ accountId, warehouse }) => {
    const { droppedBefore } = await readRetentionBounds(warehouse, shardNumber(accountId, shards));
    return withoutEventsBefore(droppedBefore, NO_CELLS);
  };
}

/**
 * Before each question reads the watermarks of its shard, which it keeps for a moment, and *then*, in a statement of its own, the
 * hours of its account that are stale: a sealer marks what it could not compute before it raises a watermark. See marks.ts.
 * What a question before it has read is enough where its stamp and watermarks are the same: {@link KnownMarks}.
 * @param shards how many there are
 */
export function createCellsReader(warehouse: Warehouse, clock: () => Date, shards = 1): ReadCells {
  const seals = Array.from({ length: shards }, (_, index) =>
    createSealReader(warehouse, clock, shards > 1 ? index + 1 : undefined),
  );
  const marks = new KnownMarks(clock);
  return async (asker, window) => {
    const readSealed = seals[shardIndex(asker.accountId, shards)];
    const sealed = await readSealed?.();
    if (!sealed) return withoutEventsBefore(0, NO_CELLS);
    const known = marks.find(asker, window, sealed);
    const { staleHours, isUnmarked } = known ?? (await readStaleHours(asker.warehouse, asker.accountId, window));
    if (!known) marks.keep(asker, window, sealed, { staleHours, isUnmarked });
    return withoutEventsBefore(sealed.droppedBefore, { ...sealed, staleHours });
  };
}

/** Watermarks only rise, so an older one is never wrong: a little more is then read from the events. */
const SEALS_KEPT_MS = 1_000;

type KnownSeals = SealedUntil & Pick<KnownCells, 'droppedBefore'>;

/** @param shard undefined: one server */
function createSealReader(
  warehouse: Warehouse,
  clock: () => Date,
  shard: number | undefined,
): () => Promise<KnownSeals> {
  let kept: KnownSeals = { hourly: 0, daily: 0, droppedBefore: 0 };
  let keptUntil = 0;
  const read = shared(async () => {
    const now = clock().getTime();
    const [{ hourly, daily }, { droppedBefore }] = await Promise.all([
      readWatermarks(warehouse, shard),
      readRetentionBounds(warehouse, shard),
    ]);
    kept = { hourly: hourly.sealedUntil, daily: daily.sealedUntil, droppedBefore };
    keptUntil = now + SEALS_KEPT_MS;
    return kept;
  });
  return async () => (clock().getTime() < keptUntil ? kept : read());
}

/** An account without marks stays so until its stamp changes. */
const UNMARKED_KEPT_MS = 60_000;
/** Hours that are repaired meanwhile are still answered from their events, which takes longer. */
const STALE_KEPT_MS = 2_000;
/** Hours; a list of them counts as so many more, because it takes half a kilobyte by itself, and questions have ever new windows. */
const MOST_KEPT = 500_000;
const LIST_COUNTS = 50;

interface Kept extends StaleHours {
  /** What was known before they were read. */
  readonly basis: string;
}

/**
 * The stale hours of accounts, each with the `sealed` stamp and the watermarks that were known *before* its marks were read. They do
 * for a question that has read the same stamp and knows the same watermarks. Take an event that was acknowledged before this
 * question was asked, in an hour below its `sealedUntil`, and the writer of the event.
 *
 * - The writer has renewed the `sealed` stamp. This question has read the stamp after that, and it is the one that was known before the
 *   marks were read. So the event's mark was durable by then: it was read, or was gone, so the hour was repaired.
 * - The writer has not. Then the event was stored before the sealer of its hour took its snapshot, and that sealer had marked
 *   what it could not compute before it raised the watermark that was known before the marks were read: the same.
 *
 * An hour that is stale no more has an exact answer from its events, too. As with kept answers, watermarks must have only risen; see
 * AnswerStamps in packages/access. Where they fall, which is while no worker runs, the first worker that begins renews all stamps.
 */
class KnownMarks {
  /** By account, and window: an account without any has one for all. */
  readonly #kept: LRUCache<string, Kept>;

  constructor(clock: () => Date) {
    this.#kept = new LRUCache({
      maxSize: MOST_KEPT,
      sizeCalculation: ({ staleHours }) => LIST_COUNTS + staleHours.length,
      perf: { now: () => clock().getTime() },
    });
  }

  find({ accountId, stamp }: Asker, window: Window, sealed: SealedUntil): StaleHours | undefined {
    if (stamp === undefined) return undefined;
    const basis = basisOf(stamp, sealed);
    const ofAccount = [this.#kept.get(accountId), this.#kept.get(keyOf(accountId, window))];
    return ofAccount.find((kept) => kept?.basis === basis);
  }

  /** @param sealed as it was known before the marks were read */
  keep({ accountId, stamp }: Asker, window: Window, sealed: SealedUntil, { staleHours, isUnmarked }: StaleHours): void {
    if (stamp === undefined) return;
    const key = isUnmarked ? accountId : keyOf(accountId, window);
    const ttl = isUnmarked ? UNMARKED_KEPT_MS : STALE_KEPT_MS;
    this.#kept.set(key, { staleHours, isUnmarked, basis: basisOf(stamp, sealed) }, { ttl });
  }
}

/** An account may be called so: its stamp is another, so neither is taken for the other. */
function keyOf(accountId: string, { startTime, endTime }: Window): string {
  return JSON.stringify([accountId, startTime, endTime]);
}

function basisOf(stamp: string, { hourly, daily }: SealedUntil): string {
  return JSON.stringify([stamp, hourly, daily]);
}
