/** Closes months, opens them again, and drops the events of months that are closed. Why it is safe: retention/bounds.ts. */
import { type EpochMs, formatTimestamp, MS_PER_DAY, type Window } from '@meterline/catalog';
import {
  dropEvents,
  type EventMonth,
  makeDayFinal,
  type RetentionBounds,
  readAuditDays,
  readEventMonths,
  readRetentionBounds,
  readWatermarks,
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

export async function readRetention(warehouse: Warehouse): Promise<Retention> {
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
export async function requireClosable(warehouse: Warehouse, before: EpochMs, now: EpochMs): Promise<void> {
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
export async function closeMonths(warehouse: Warehouse, before: EpochMs, now: EpochMs): Promise<void> {
  await requireClosable(warehouse, before, now);
  await setRetentionBound(warehouse, 'closed', before);
}

/**
 * Events from then on are accepted again.
 * @throws OperationError when these months are being dropped
 */
export async function reopenMonths(warehouse: Warehouse, from: EpochMs): Promise<void> {
  const { droppingBefore } = await readRetentionBounds(warehouse);
  if (from < droppingBefore) {
    throw new OperationError(
      `months before ${formatTimestamp(droppingBefore)} cannot be opened again: their events have been dropped, or are about ` +
        'to be',
    );
  }
  await setRetentionBound(warehouse, 'closed', from);
}

export interface DropOptions {
  readonly warehouse: Warehouse;
  /** For accounts with cells that were repaired. */
  readonly renewStamps: RenewStamps;
  readonly now: EpochMs;
  /** Ends the drop between two days. */
  readonly signal: AbortSignal;
  /** In days that are compared. */
  readonly onProgress: OnProgress;
  /** Called when the events of a month are gone. */
  readonly onDropped: (month: EventMonth) => void;
  readonly recheckMs?: number;
}

/**
 * Drops the events of all months that are closed, the oldest first, each when its cells agree with them.
 *
 * Crash order, for each month: compared; the bound `dropping` is set; compared again, with what was stored meanwhile, and
 * repaired; cells made final, a day after the other; the bound `dropped` is set; events dropped. What a crash leaves is at
 * retention/bounds.ts in packages/warehouse; calling it again does the rest.
 *
 * @throws OperationError when a month is not sealed, or its cells differ from its events
 */
export async function dropClosedMonths(options: DropOptions): Promise<void> {
  const { warehouse, renewStamps, now, signal, onDropped } = options;
  for (;;) {
    const { closedBefore, droppingBefore, droppedBefore, months } = await readRetention(warehouse);
    const [month] = months.filter(({ endTime }) => endTime <= closedBefore);
    if (!month || signal.aborted) return;
    const { endTime } = month;
    // What is stored in a month that is final has come too late and was refused.
    if (endTime > droppedBefore) {
      await requireClosable(warehouse, endTime, now);
      // With earlier months, which had no events a moment ago.
      const window = { startTime: droppedBefore, endTime };
      if (endTime > droppingBefore) {
        await compare(options, window);
        if (signal.aborted) return;
        await setRetentionBound(warehouse, 'dropping', endTime);
      }
      await compare(options, window, renewStamps);
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
  const { warehouse, now } = options;
  const { closedBefore, droppedBefore, months } = await readRetention(warehouse);
  const closed = months.filter(({ endTime }) => endTime <= closedBefore);
  if (closed.some(({ endTime }) => endTime > droppedBefore)) {
    await requireClosable(warehouse, closedBefore, now);
    await compare(options, { startTime: droppedBefore, endTime: closedBefore });
  }
  return closed;
}

/**
 * A comparison that repairs is the last one: it includes the cells of stale hours, whose marks nobody heeds afterwards.
 * @throws OperationError when cells differ from their events, after a repair if it is wanted
 */
async function compare(options: Rehearsal, window: Window, repair?: RenewStamps): Promise<void> {
  const { warehouse, signal, onProgress, recheckMs } = options;
  const isLast = repair !== undefined;
  const audit = { warehouse, accountId: undefined, window, repair, includesStale: isLast, signal, onProgress };
  const found = await auditCells(recheckMs === undefined ? audit : { ...audit, recheckMs });
  const different = isLast ? found.stillDifferent : found.differences;
  if (different.length === 0) return;
  const [from, to] = [formatTimestamp(window.startTime), formatTimestamp(window.endTime)];
  throw new OperationError(
    `cells differ from their events, which were not dropped; see "meterline audit --from ${from} --to ${to}", ` +
      'repair them with --repair, and run this again',
  );
}
