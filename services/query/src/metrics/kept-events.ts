/**
 * Questions about months whose events have been dropped: their hours and days are answered from cells, to the last digit, and
 * what only events could answer is refused. Why no answer lacks events that were dropped while it was computed:
 * packages/warehouse/src/retention/bounds.ts.
 */
import { type EpochMs, MS_PER_HOUR, type Window } from '@meterline/catalog';
import { type ReadableCells, readRetentionBounds, type Warehouse } from '@meterline/warehouse';
import { partOfHourDropped } from '../http/errors.js';

/** Which cells a question may read, and before when it may read nothing else. */
export interface KnownCells extends ReadableCells {
  /** Events before may be gone. */
  readonly droppedBefore: EpochMs;
}

/**
 * Months are closed only when they are sealed, whatever a watermark that was set back says. A mark of such a month was left by a
 * worker that was frozen: its cells are final.
 */
export function withoutEventsBefore(droppedBefore: EpochMs, cells: ReadableCells): KnownCells {
  return {
    hourly: Math.max(cells.hourly, droppedBefore),
    daily: Math.max(cells.daily, droppedBefore),
    staleHours: cells.staleHours.filter((hour) => hour >= droppedBefore),
    droppedBefore,
  };
}

/**
 * Asks a question, and once more with what is known then if events that it may have read were dropped meanwhile.
 * @param shard of the account, as at `readRetentionBounds`
 * @throws ApiError `events_dropped` where a part of an hour is asked of such a month
 */
export async function whileEventsLast<T>(
  warehouse: Warehouse,
  window: Window,
  cells: KnownCells,
  shard: number | undefined,
  ask: (cells: KnownCells) => Promise<T>,
): Promise<T> {
  requireWholeHours(window, cells.droppedBefore);
  const answer = await ask(cells);
  // What is not sealed is not dropped: this month and the one before it stay open. Where only what was dropped is known to be
  // sealed, as for a question to the events alone, the next months may be.
  const knowsSealed = cells.hourly > cells.droppedBefore;
  if (knowsSealed && partsOfHours(window, cells.hourly).length === 0 && cells.staleHours.length === 0) return answer;
  const { droppedBefore } = await readRetentionBounds(warehouse, shard);
  if (droppedBefore <= cells.droppedBefore) return answer;
  return whileEventsLast(warehouse, window, withoutEventsBefore(droppedBefore, cells), shard, ask);
}

function requireWholeHours(window: Window, droppedBefore: EpochMs): void {
  const parameters = partsOfHours(window, droppedBefore);
  if (parameters.length > 0) throw partOfHourDropped(window, parameters, droppedBefore);
}

/** Which ends of the window cut an hour in two that begins before the instant, and not before all events. */
function partsOfHours(window: Window, before: EpochMs): (keyof Window)[] {
  const ends = ['startTime', 'endTime'] as const;
  return ends.filter((end) => window[end] > 0 && window[end] < before && window[end] % MS_PER_HOUR !== 0);
}
