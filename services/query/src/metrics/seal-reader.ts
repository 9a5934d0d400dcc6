/** Which cells queries may read. */
import { NOTHING_SEALED, readWatermarks, type SealedUntil, type Warehouse } from '@meterline/warehouse';

/** Watermarks only rise, so an older one is never wrong: a little more is then read from the events. */
const KEPT_MS = 1_000;

export type ReadSealed = () => Promise<SealedUntil>;

/** Reads from the events alone: slower, and what the cells are compared with. */
export const readNothingSealed: ReadSealed = () => Promise.resolve(NOTHING_SEALED);

/** Reads the watermarks, in a statement of its own before each question, and keeps them for a moment. */
export function createSealReader(warehouse: Warehouse, clock: () => Date): ReadSealed {
  let kept: SealedUntil = NOTHING_SEALED;
  let keptUntil = 0;
  return async () => {
    const now = clock().getTime();
    if (now < keptUntil) return kept;
    const { hourly, daily } = await readWatermarks(warehouse);
    kept = { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
    keptUntil = now + KEPT_MS;
    return kept;
  };
}
