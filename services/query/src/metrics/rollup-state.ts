/**
 * Months whose events have been dropped are answered from rollup rows, to the last digit, and what only events could answer is
 * refused; why no response lacks events that are dropped meanwhile: retention/bounds.ts in packages/warehouse.
 */
import { type EpochMs, MS_PER_HOUR, type Window } from '@meterline/catalog';
import { type RollupState, readRetentionBounds, stateSince, type Warehouse } from '@meterline/warehouse';
import { partOfHourDropped } from '../http/errors.js';

/**
 * Runs a query, and once more with what is known then if events that it may have read were dropped meanwhile.
 * @throws ApiError `events_dropped` where a part of an hour is asked for of such a month
 */
export async function whileEventsLast<T>(
  warehouse: Warehouse,
  window: Window,
  state: RollupState,
  run: (state: RollupState) => Promise<T>,
): Promise<T> {
  requireWholeHours(window, state.droppedBefore);
  const result = await run(state);
  // What is not sealed is not dropped: this month and the one before it stay open. Where only what was dropped is known to be
  // sealed, as for a query of the events alone, the next months may be.
  const knowsSealed = state.hourly > state.droppedBefore;
  if (knowsSealed && partsOfHours(window, state.hourly).length === 0 && state.dirtyHours.length === 0) return result;
  const { droppedBefore } = await readRetentionBounds(warehouse);
  if (droppedBefore <= state.droppedBefore) return result;
  return whileEventsLast(warehouse, window, stateSince(droppedBefore, state), run);
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
