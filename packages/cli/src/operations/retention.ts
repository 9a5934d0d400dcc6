/**
 * Closes months (workers then reject their events), reopens months, and drops the events of closed months. retention.ts in
 * packages/warehouse explains why this is safe.
 */
import { type EpochMs, formatTimestamp, MS_PER_DAY, type Window } from '@meterline/catalog';
import {
  dropEvents,
  type EventMonth,
  lowestWatermarks,
  makeDayFinal,
  onEachShard,
  type RetentionBounds,
  readAuditDays,
  readBounds,
  readEventMonths,
  type Shards,
  setRetentionBound,
  type Warehouse,
} from '@meterline/warehouse';
import { CommandError } from '../failure.js';
import { auditRollups } from './audit.js';
import type { OnProgress } from './operation.js';

export interface Retention extends RetentionBounds {
  /** Months before this time are closed on all shards. Earlier than `closedBefore` if a crash interrupted the closing between two shards. */
  readonly closedEverywhere: EpochMs;
  readonly months: readonly EventMonth[];
}

/**
 * Reads the bounds of all shards. A month counts as closed or as being dropped if this is true on any shard. A month counts as dropped
 * only if this is true on all shards.
 */
export async function readRetention({ all }: Shards): Promise<Retention> {
  const bounds = await onEachShard(all, readBounds);
  const rows = new Map<EpochMs, EventMonth>();
  for (const month of (await onEachShard(all, readEventMonths)).flat()) {
    const known = rows.get(month.startTime)?.rows ?? 0;
    rows.set(month.startTime, { ...month, rows: known + month.rows });
  }
  return {
    closedBefore: Math.max(...bounds.map(({ closedBefore }) => closedBefore)),
    closedEverywhere: Math.min(...bounds.map(({ closedBefore }) => closedBefore)),
    droppingBefore: Math.max(...bounds.map(({ droppingBefore }) => droppingBefore)),
    droppedBefore: Math.min(...bounds.map(({ droppedBefore }) => droppedBefore)),
    months: [...rows.values()].sort((a, b) => a.startTime - b.startTime),
  };
}

/**
 * Closes months, so that workers reject their events within seconds. Durable when the promise resolves.
 * @param before the start of a month
 * @returns the resulting bound. It is later than `before` if more months were already closed, because only `reopenMonths` reopens months.
 * @throws CommandError if earlier months are not sealed (their rollup rows are not complete yet)
 */
export async function closeMonths(shards: Shards, before: EpochMs): Promise<EpochMs> {
  await requireSealed(shards, before);
  const { closedBefore } = await readRetention(shards);
  const until = Math.max(before, closedBefore);
  await setRetentionBound(shards.all, 'closed', until);
  return until;
}

export async function requireSealed({ all }: Shards, before: EpochMs): Promise<void> {
  const { hourly, daily } = await lowestWatermarks(all);
  const sealedUntil = Math.min(hourly.sealedUntil, daily.sealedUntil);
  if (sealedUntil >= before) return;
  throw new CommandError(
    `months before ${formatTimestamp(before)} cannot be closed yet, because hours are only sealed until ` +
      `${formatTimestamp(sealedUntil)}; wait until the ingest workers have sealed them`,
  );
}

/** Reopens months, so that workers accept their events again. @throws CommandError if one of these months is dropped or being dropped */
export async function reopenMonths(shards: Shards, from: EpochMs): Promise<void> {
  const { droppingBefore } = await readRetention(shards);
  if (from < droppingBefore) {
    throw new CommandError(
      `months before ${formatTimestamp(droppingBefore)} cannot be reopened: their events are dropped or being dropped`,
    );
  }
  await setRetentionBound(shards.all, 'closed', from);
}

export interface DropOptions {
  readonly shards: Shards;
  /** The end of the months that the operator confirmed. Months that are closed later are not dropped. */
  readonly before: EpochMs;
  readonly signal: AbortSignal;
  readonly onProgress: OnProgress;
  readonly onDropped: (month: EventMonth) => void;
  readonly recheckMs?: number;
}

/**
 * Drops the events of closed months whose rollup rows match their events, oldest month first.
 * Crash order of a month: first compare the rows with the events. Set the bound `dropping` on all shards. Then compare again, because events
 * may have been stored meanwhile, and repair. Make the rollup rows final, day by day. Set the bound `dropped` on all shards. Finally, drop the
 * events. After a crash, the next call finishes the month. retention.ts in packages/warehouse describes the states that a crash can leave.
 * @throws CommandError if a month is not sealed, or its rollup rows differ from its events
 */
export async function dropClosedMonths(options: DropOptions): Promise<void> {
  const { shards, before, signal, onDropped } = options;
  for (;;) {
    const { closedBefore, droppingBefore, droppedBefore, months } = await readRetention(shards);
    const [month] = months.filter(({ endTime }) => endTime <= Math.min(before, closedBefore));
    if (!month || signal.aborted) return;
    const { endTime } = month;
    // If an earlier run made the month final, the remaining events arrived too late and do not count. Drop them without a comparison.
    if (endTime > droppedBefore) {
      await requireSealed(shards, endTime);
      // The window includes earlier months. They had no events when the months were read, but may have events now.
      const window = { startTime: droppedBefore, endTime };
      if (endTime > droppingBefore) await compare(options, window);
      if (signal.aborted) return;
      // Set the bound even if some shards have it already, because a crash may have interrupted this step.
      await setRetentionBound(shards.all, 'dropping', endTime);
      await compare(options, window, true);
      await onEachShard(shards.all, (shard) => makeDaysFinal(shard, window, signal));
      if (signal.aborted) return;
      await setRetentionBound(shards.all, 'dropped', endTime);
    }
    await onEachShard(shards.all, (shard) => dropEvents(shard, month));
    onDropped(month);
  }
}

async function makeDaysFinal(shard: Warehouse, window: Window, signal: AbortSignal): Promise<void> {
  for (const day of await readAuditDays(shard, { window })) {
    if (signal.aborted) return;
    await makeDayFinal(shard, { startTime: day, endTime: day + MS_PER_DAY });
  }
}

type DryRun = Omit<DropOptions, 'before' | 'onDropped'>;

/** Checks whether the events of closed months could be dropped. Changes nothing. @throws CommandError like {@link dropClosedMonths} */
export async function compareClosedMonths(options: DryRun): Promise<void> {
  const { closedBefore, droppedBefore, months } = await readRetention(options.shards);
  if (!months.some(({ endTime }) => endTime > droppedBefore && endTime <= closedBefore)) return;
  await requireSealed(options.shards, closedBefore);
  await compare(options, { startTime: droppedBefore, endTime: closedBefore });
}

/**
 * Compares rollup rows with their events.
 * @param isLast for the comparison before rows become final: repairs differences first, and includes dirty hours, which no worker can
 * recompute afterwards
 * @throws CommandError if rollup rows differ from their events
 */
async function compare(
  { shards, signal, onProgress, recheckMs }: DryRun,
  window: Window,
  isLast = false,
): Promise<void> {
  const audit = { shards, accountId: undefined, window, repair: isLast, includesDirty: isLast, signal, onProgress };
  const found = await auditRollups(recheckMs === undefined ? audit : { ...audit, recheckMs });
  const different = isLast ? found.stillDifferent : found.differences;
  if (different.length === 0) return;
  const [from, to] = [formatTimestamp(window.startTime), formatTimestamp(window.endTime)];
  throw new CommandError(
    `rollup rows differ from their events, so the events were not dropped; run "meterline audit --from ${from} --to ${to}", ` +
      'add --repair to repair the rows, and run this command again',
  );
}
