/** Which cells a question may read: what a query process knows of watermarks, marks, and months whose events were dropped. */
import type { EpochMs, Window } from '@meterline/catalog';
import { shared } from '@meterline/service';
import {
  NO_CELLS,
  readRetentionBounds,
  readStaleHours,
  readWatermarks,
  type SealedUntil,
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
 * That an account has no mark at all is kept for a minute: {@link UnmarkedAccounts}.
 * @param shards how many there are
 */
export function createCellsReader(warehouse: Warehouse, clock: () => Date, shards = 1): ReadCells {
  const seals = Array.from({ length: shards }, (_, index) =>
    createSealReader(warehouse, clock, shards > 1 ? index + 1 : undefined),
  );
  const unmarked = new UnmarkedAccounts();
  return async (asker, window) => {
    const readSealed = seals[shardIndex(asker.accountId, shards)];
    const sealed = await readSealed?.();
    if (!sealed) return withoutEventsBefore(0, NO_CELLS);
    const withStale = (staleHours: readonly EpochMs[]) =>
      withoutEventsBefore(sealed.droppedBefore, { ...sealed, staleHours });
    if (unmarked.has(asker, sealed)) return withStale([]);
    const { staleHours, isUnmarked } = await readStaleHours(asker.warehouse, asker.accountId, window);
    if (isUnmarked) unmarked.add(asker, sealed);
    return withStale(staleHours);
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

const UNMARKED_KEPT_MS = 60_000;
const MAX_UNMARKED = 10_000;

/**
 * Accounts without a mark, each with the `sealed` stamp and the watermarks that were known *before* its marks were read. Without
 * marks being read again that holds for a question that has read the same stamp and knows the same watermarks. Take an event
 * that was acknowledged before this question was asked, in an hour below its `sealedUntil`, and the writer of the event.
 *
 * - The writer has renewed the `sealed` stamp. This question has read the stamp after that, and it is the one that was known before the
 *   marks were read. So the event's mark was durable by then, and gone: repaired.
 * - The writer has not. Then the event was stored before the sealer of its hour took its snapshot, and that sealer had marked
 *   what it could not compute before it raised the watermark that was known before the marks were read. So the cell has the event.
 *
 * As with kept answers, watermarks must have only risen; see AnswerStamps in packages/access. Where they fall, which is
 * while no worker runs, the first worker that begins renews all stamps.
 */
class UnmarkedAccounts {
  readonly #known = new LRUCache<string, string>({ max: MAX_UNMARKED, ttl: UNMARKED_KEPT_MS });

  has(asker: Asker, sealed: SealedUntil): boolean {
    return asker.stamp !== undefined && this.#known.get(asker.accountId) === basisOf(asker.stamp, sealed);
  }

  /** @param sealed as it was known before the account's marks were read */
  add({ accountId, stamp }: Asker, sealed: SealedUntil): void {
    if (stamp !== undefined) this.#known.set(accountId, basisOf(stamp, sealed));
  }
}

function basisOf(stamp: string, { hourly, daily }: SealedUntil): string {
  return JSON.stringify([stamp, hourly, daily]);
}
