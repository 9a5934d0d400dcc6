/** Closes months, opens them again, and drops the events of months that are closed. Why it is safe: retention.ts in packages/warehouse. */
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

/** What is kept, for an operator to see. */
export interface Retention extends RetentionBounds {
  /** On every shard: before `closedBefore` where a closing broke off between two of them. */
  readonly closedEverywhere: EpochMs;
  /** Months with events, ascending. */
  readonly months: readonly EventMonth[];
}

/** A month is closed, or being dropped, if it is on any shard, and dropped if it is on all. */
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
 * Events before are rejected from now on; workers know within seconds. Durable when the promise resolves.
 * @param before the start of a month
 * @returns before which months are closed now: somebody may have closed more since this was asked, which only `reopenMonths` opens again
 * @throws CommandError when the months before it are not sealed
 */
export async function closeMonths(shards: Shards, before: EpochMs): Promise<EpochMs> {
  await requireSealed(shards, before);
  const { closedBefore } = await readRetention(shards);
  const until = Math.max(before, closedBefore);
  await setRetentionBound(shards.all, 'closed', until);
  return until;
}

/** @throws CommandError when the months before are not sealed */
export async function requireSealed({ all }: Shards, before: EpochMs): Promise<void> {
  const { hourly, daily } = await lowestWatermarks(all);
  const sealedUntil = Math.min(hourly.sealedUntil, daily.sealedUntil);
  if (sealedUntil >= before) return;
  throw new CommandError(
    `hours are sealed until ${formatTimestamp(sealedUntil)} only, so months before ${formatTimestamp(before)} cannot be ` +
      'closed yet; wait until the ingest workers have sealed them',
  );
}

/**
 * Events from then on are accepted again.
 * @throws CommandError when these months are being dropped
 */
export async function reopenMonths(shards: Shards, from: EpochMs): Promise<void> {
  const { droppingBefore } = await readRetention(shards);
  if (from < droppingBefore) {
    throw new CommandError(
      `months before ${formatTimestamp(droppingBefore)} cannot be opened again: their events have been dropped, or are about ` +
        'to be',
    );
  }
  await setRetentionBound(shards.all, 'closed', from);
}

export interface DropOptions {
  readonly shards: Shards;
  /** Closed months before this alone: what is closed later nobody has seen, nor confirmed. */
  readonly before: EpochMs;
  /** Ends the drop between two days. */
  readonly signal: AbortSignal;
  /** In days that are compared. */
  readonly onProgress: OnProgress;
  /** Called when the events of a month are gone. */
  readonly onDropped: (month: EventMonth) => void;
  readonly recheckMs?: number;
}

/**
 * Drops the events of months that are closed, the oldest first, each when its rollup rows agree with them.
 *
 * Crash order, for each month: compared; the bound `dropping` is set on every shard; compared again, with what was stored
 * meanwhile, and repaired; rollup rows made final, a day after the other; the bound `dropped` is set on every shard; events
 * dropped. What a crash leaves: retention.ts in packages/warehouse; calling it again does the rest.
 *
 * @throws CommandError when a month is not sealed, or its rollup rows differ from its events
 */
export async function dropClosedMonths(options: DropOptions): Promise<void> {
  const { shards, before, signal, onDropped } = options;
  for (;;) {
    const { closedBefore, droppingBefore, droppedBefore, months } = await readRetention(shards);
    const [month] = months.filter(({ endTime }) => endTime <= Math.min(before, closedBefore));
    if (!month || signal.aborted) return;
    const { endTime } = month;
    // What is stored in a month that is final has come too late and was rejected.
    if (endTime > droppedBefore) {
      await requireSealed(shards, endTime);
      // With earlier months, which had no events a moment ago.
      const window = { startTime: droppedBefore, endTime };
      if (endTime > droppingBefore) await compare(options, window);
      if (signal.aborted) return;
      // The bound is set even when some shard has it: a crash may have come before it was on all.
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

/**
 * Whether the events of months that are closed could be dropped; changes nothing.
 * @throws CommandError as {@link dropClosedMonths}
 */
export async function compareClosedMonths(options: DryRun): Promise<void> {
  const { closedBefore, droppedBefore, months } = await readRetention(options.shards);
  if (!months.some(({ endTime }) => endTime > droppedBefore && endTime <= closedBefore)) return;
  await requireSealed(options.shards, closedBefore);
  await compare(options, { startTime: droppedBefore, endTime: closedBefore });
}

/**
 * A comparison that repairs is the last one: it includes the rollup rows of dirty hours, whose marks nobody heeds afterwards.
 * @throws CommandError when rollup rows differ from their events, after a repair if it is wanted
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
    `rollup rows differ from their events, which were not dropped; see "meterline audit --from ${from} --to ${to}", ` +
      'repair them with --repair, and run this again',
  );
}
