/** Closes months, opens them again, and drops the events of months that are closed. Why it is safe: retention/bounds.ts. */
import { type EpochMs, formatTimestamp, MS_PER_DAY, type Window } from '@meterline/catalog';
import {
  dropEvents,
  type EventMonth,
  makeDayFinal,
  oneServer,
  type RetentionBounds,
  readAuditDays,
  readEventMonths,
  readRetentionBounds,
  readWatermarks,
  type Shards,
  setRetentionBound,
  type Warehouse,
} from '@meterline/warehouse';
import { auditCells } from './audit.js';
import { type OnProgress, OperationError } from './operation-error.js';
import type { RenewStamps } from './renewed-stamps.js';

/** What is kept, for an operator to see. */
export interface Retention extends RetentionBounds {
  /** Months with events, ascending. */
  readonly months: readonly EventMonth[];
}

/** Of all shards: a month is closed, or being dropped, if it is in any of them, and dropped if it is in all. */
export async function readRetention(shards: Shards): Promise<Retention> {
  const found = await Promise.all(shards.all.map(readShardRetention));
  const rows = new Map<EpochMs, EventMonth>();
  for (const month of found.flatMap(({ months }) => months)) {
    const known = rows.get(month.startTime)?.rows ?? 0;
    rows.set(month.startTime, { ...month, rows: known + month.rows });
  }
  return {
    closedBefore: Math.max(...found.map(({ closedBefore }) => closedBefore)),
    droppingBefore: Math.max(...found.map(({ droppingBefore }) => droppingBefore)),
    droppedBefore: Math.min(...found.map(({ droppedBefore }) => droppedBefore)),
    months: [...rows.values()].sort((a, b) => a.startTime - b.startTime),
  };
}

async function readShardRetention(warehouse: Warehouse): Promise<Retention> {
  const [bounds, months] = await Promise.all([readRetentionBounds(warehouse), readEventMonths(warehouse)]);
  return { ...bounds, months };
}

/**
 * The last month that a clock of now keeps open is the one before this month: late events of its end are usual, and so are
 * questions that are under way.
 */
export function latestClosing(now: EpochMs): EpochMs {
  return monthsBefore(now, 1);
}

/** The start of the month that lies so many months before the one of the instant. */
export function monthsBefore(instant: EpochMs, months: number): EpochMs {
  const date = new Date(instant);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - months);
}

/**
 * @param before the start of a month
 * @throws OperationError when the months before it cannot be closed yet
 */
export async function requireClosable(shards: Shards, before: EpochMs, now: EpochMs): Promise<void> {
  for (const shard of shards.all) await requireSealed(shard, before, now);
}

async function requireSealed(warehouse: Warehouse, before: EpochMs, now: EpochMs): Promise<void> {
  if (before > latestClosing(now)) {
    throw new OperationError(
      `months before ${formatTimestamp(before)} cannot be closed yet: this month and the one before it stay open`,
    );
  }
  const { hourly, daily } = await readWatermarks(warehouse);
  const sealedUntil = Math.min(hourly.sealedUntil, daily.sealedUntil);
  if (sealedUntil >= before) return;
  throw new OperationError(
    `hours are sealed until ${formatTimestamp(sealedUntil)} only, so months before ${formatTimestamp(before)} cannot be ` +
      'closed yet; wait until the ingest workers have sealed them',
  );
}

/**
 * Events before are refused from now on; workers know within seconds. Durable when the promise resolves.
 * @throws OperationError as {@link requireClosable}
 */
export async function closeMonths(shards: Shards, before: EpochMs, now: EpochMs): Promise<void> {
  await requireClosable(shards, before, now);
  for (const shard of shards.all) await setRetentionBound(shard, 'closed', before);
}

/**
 * Events from then on are accepted again.
 * @throws OperationError when these months are being dropped
 */
export async function reopenMonths(shards: Shards, from: EpochMs): Promise<void> {
  const { droppingBefore } = await readRetention(shards);
  if (from < droppingBefore) {
    throw new OperationError(
      `months before ${formatTimestamp(droppingBefore)} cannot be opened again: their events have been dropped, or are about ` +
        'to be',
    );
  }
  for (const shard of shards.all) await setRetentionBound(shard, 'closed', from);
}

export interface DropOptions {
  readonly shards: Shards;
  /** For accounts with cells that were repaired. */
  readonly renewStamps: RenewStamps;
  readonly now: EpochMs;
  /** Ends the drop between two days. */
  readonly signal: AbortSignal;
  /** In days that are compared. */
  readonly onProgress: OnProgress;
  /** Called when the events of a month are gone from a shard. */
  readonly onDropped: (month: EventMonth) => void;
  readonly recheckMs?: number;
}

/**
 * Drops the events of all months that are closed, the oldest first, each when its cells agree with them; a shard after the other.
 *
 * Crash order, for each month: compared; the bound `dropping` is set; compared again, with what was stored meanwhile, and
 * repaired; cells made final, a day after the other; the bound `dropped` is set; events dropped. What a crash leaves is at
 * retention/bounds.ts in packages/warehouse; calling it again does the rest.
 *
 * @throws OperationError when a month is not sealed, or its cells differ from its events
 */
export async function dropClosedMonths(options: DropOptions): Promise<void> {
  for (const shard of options.shards.all) await dropFromShard(shard, options);
}

async function dropFromShard(warehouse: Warehouse, options: DropOptions): Promise<void> {
  const { renewStamps, now, signal, onDropped } = options;
  for (;;) {
    const { closedBefore, droppingBefore, droppedBefore, months } = await readShardRetention(warehouse);
    const [month] = months.filter(({ endTime }) => endTime <= closedBefore);
    if (!month || signal.aborted) return;
    const { endTime } = month;
    // What is stored in a month that is final has come too late and was refused.
    if (endTime > droppedBefore) {
      await requireSealed(warehouse, endTime, now);
      // With earlier months, which had no events a moment ago.
      const window = { startTime: droppedBefore, endTime };
      if (endTime > droppingBefore) {
        await compare(warehouse, options, window);
        if (signal.aborted) return;
        await setRetentionBound(warehouse, 'dropping', endTime);
      }
      await compare(warehouse, options, window, renewStamps);
      for (const day of await readAuditDays(warehouse, { window })) {
        if (signal.aborted) return;
        await makeDayFinal(warehouse, { startTime: day, endTime: day + MS_PER_DAY });
      }
      if (signal.aborted) return;
      await setRetentionBound(warehouse, 'dropped', endTime);
    }
    await dropEvents(warehouse, month);
    onDropped(month);
  }
}

type Rehearsal = Omit<DropOptions, 'onDropped' | 'renewStamps'>;

/**
 * Whether the events of months that are closed could be dropped; changes nothing.
 * @returns these months
 * @throws OperationError as {@link dropClosedMonths}
 */
export async function rehearseDrop(options: Rehearsal): Promise<readonly EventMonth[]> {
  for (const shard of options.shards.all) {
    const { closedBefore, droppedBefore, months } = await readShardRetention(shard);
    if (!months.some(({ endTime }) => endTime <= closedBefore && endTime > droppedBefore)) continue;
    await requireSealed(shard, closedBefore, options.now);
    await compare(shard, options, { startTime: droppedBefore, endTime: closedBefore });
  }
  const { closedBefore, months } = await readRetention(options.shards);
  return months.filter(({ endTime }) => endTime <= closedBefore);
}

/**
 * A comparison that repairs is the last one: it includes the cells of stale hours, whose marks nobody heeds afterwards.
 * @throws OperationError when cells differ from their events, after a repair if it is wanted
 */
async function compare(
  warehouse: Warehouse,
  { signal, onProgress, recheckMs }: Rehearsal,
  window: Window,
  repair?: RenewStamps,
): Promise<void> {
  const isLast = repair !== undefined;
  const shards = oneServer(warehouse);
  const audit = { shards, accountId: undefined, window, repair, includesStale: isLast, signal, onProgress };
  const found = await auditCells(recheckMs === undefined ? audit : { ...audit, recheckMs });
  const different = isLast ? found.stillDifferent : found.differences;
  if (different.length === 0) return;
  const [from, to] = [formatTimestamp(window.startTime), formatTimestamp(window.endTime)];
  throw new OperationError(
    `cells differ from their events, which were not dropped; see "meterline audit --from ${from} --to ${to}", ` +
      'repair them with --repair, and run this again',
  );
}
