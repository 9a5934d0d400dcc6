/**
 * Marks of stale hours: a writer that has stored events into hours that are sealed marks them, and acknowledges. A sealer marks
 * those of cells that are too large for the server's limits. Questions answer marked hours from the events, until a repairer
 * has recomputed their cells.
 *
 * Why an answer holds every event that was acknowledged when it was asked for, and each once:
 *
 * - A sealer publishes `sealingUntil`, takes its snapshot of the events, writes cells, marks the hours of those that it could not
 *   write (of a day: its first hour), publishes `sealedUntil`.
 * - A writer stores its events, then reads `sealingUntil`, then marks the hours below it, then acknowledges.
 * - A question knows a `sealedUntil`, of any moment, and *then* reads its account's marks, not before it was asked. Which hours are
 *   marked is part of its text, so no hour is read from both sources or from neither. What an earlier question
 *   has read is enough if the account's stamp and the watermarks say that no other mark can have come: KnownMarks in services/query.
 * - A repairer reads marks, writes the hours' cells, then reads the days' `sealingUntil`, writes the days' cells below it, and
 *   then removes exactly the marks that it has read.
 *
 * Take an event that was acknowledged before the question, whose hour the question reads from its cell: the hour is below
 * `sealedUntil` and has no mark. Either its writer had read a `sealingUntil` not above the hour. Then the event was stored before
 * any sealer of the hour took its snapshot, and before `sealedUntil` was published the cell was written, or the hour marked: then
 * the question, which knew `sealedUntil` before it read marks, would have found that mark, unless it is gone. Or the writer had
 * marked the hour, and the mark is gone. Of a mark that is gone: a repairer has read it, so its snapshot, taken later, holds the
 * event, and the cell was written before the mark was removed. Any row that replaces the cell has a higher version: a later snapshot.
 *
 * A day is read from its cell only if none of its hours is marked. Then the hour's cell with the event was written either
 * before the snapshot of the sealer of the day, and is in it, or after that sealer had published the days' `sealingUntil`; then
 * the repairer has read that, and has written the day before it removed the mark. If that sealer has marked the day's first hour
 * instead of writing the day, the same holds of the repairer that has removed this mark: it has read marks, and the hours' cells,
 * after the sealer had published the days' `sealingUntil`.
 *
 * Nobody's death or delay does harm. An event whose writer died before its mark was durable is not acknowledged, and
 * its redelivery marks again. A mark whose repairer died is repaired by another. A key that is removed is never set on
 * purpose again, and one that arrives late because it was sent twice costs a recomputation.
 */
import { randomUUID } from 'node:crypto';
import { type EpochMs, MS_PER_HOUR, type Window } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { insertRows } from '../clickhouse/insert.js';
import { type EventRows, hoursBefore } from '../events/event-rows.js';
import type { AccountHours, Cell } from './cells.js';
import { readWatermarks } from './watermarks.js';

const TABLE = 'stale_hours';

/** Some hours of one account that one insert has marked. */
export interface Mark extends AccountHours {
  readonly markId: string;
}

/**
 * Marks the hours of events that are durable, as far as they are sealed or being sealed. To be called after the insert has
 * succeeded and before the job is acknowledged; calling it again does no harm.
 *
 * @param writer a UUID of this process
 * @returns what was marked: an account once
 */
export async function markStaleHours(
  warehouse: Warehouse,
  writer: string,
  parts: readonly EventRows[],
): Promise<readonly AccountHours[]> {
  const { hourly } = await readWatermarks(warehouse);
  const stale = hoursBefore(hourly.sealingUntil, parts);
  await insertMarks(warehouse, writer, stale);
  return stale;
}

/** One row for an account, whatever the number of its hours: no two rows of an insert have the same key. */
async function insertMarks(warehouse: Warehouse, writer: string, stale: readonly AccountHours[]): Promise<void> {
  const markId = randomUUID();
  const rows = stale.map(({ accountId, hours }) => ({
    account_id: accountId,
    mark_id: markId,
    hours: hours.map((hour) => hour / 1000),
    writer,
    sign: 1,
  }));
  await insertRows(warehouse, TABLE, rows, 'mark_stale_hours');
}

/**
 * Marks cells that were not computed, before `sealedUntil` is raised above them: of a day its first hour, which is enough for the
 * day not to be read. Nobody in particular repairs them, so anybody does, a minute later.
 */
export async function markCells(warehouse: Warehouse, cells: readonly Cell[]): Promise<void> {
  const hours = new Map<string, EpochMs[]>();
  for (const { accountId, bucket } of cells) hours.set(accountId, [...(hours.get(accountId) ?? []), bucket]);
  const stale = Array.from(hours, ([accountId, ofAccount]) => ({ accountId, hours: ofAccount }));
  if (stale.length > 0) await insertMarks(warehouse, randomUUID(), stale);
}

/** To be called when the cells of all their hours, and of these hours' days, are durable. */
export async function removeMarks(warehouse: Warehouse, marks: readonly Mark[]): Promise<void> {
  const rows = marks.map(({ accountId, markId }) => ({ account_id: accountId, mark_id: markId, sign: -1 }));
  await insertRows(warehouse, TABLE, rows, 'remove_marks');
}

/** Of the rows of one key: whether none of them removes it. */
const IS_OPEN = 'min(sign) > 0';
/** As numbers: seconds since 1970. */
const HOURS = "CAST(any(hours), 'Array(UInt32)')";

const hoursRow = z.object({ stale: z.array(z.number()) });

export interface StaleHours {
  /** Those of the window, ascending. */
  readonly staleHours: readonly EpochMs[];
  /** Whether no hour of the account is marked, in the window or outside of it. */
  readonly isUnmarked: boolean;
}

/** The marked hours of an account in a window. One short statement, of one level: see docs/decisions/0010. */
export async function readStaleHours(warehouse: Warehouse, accountId: string, window: Window): Promise<StaleHours> {
  const rows = await warehouse.read(staleHoursStatement(accountId, window), hoursRow);
  const hours = new Set(rows.flatMap(({ stale }) => stale));
  const staleHours = [...hours].sort((a, b) => a - b).map((second) => second * 1000);
  return { staleHours, isUnmarked: rows.length === 0 };
}

/** A row for each open mark of the account. @param window of any years */
function staleHoursStatement(accountId: string, { startTime, endTime }: Window): Statement {
  return {
    name: 'read_stale_hours',
    query: `
SELECT arrayFilter(hour -> hour >= {from: Int64} AND hour < {to: Int64}, ${HOURS}) AS stale
FROM ${TABLE}
WHERE account_id = {account_id: String}
GROUP BY mark_id
HAVING ${IS_OPEN}`,
    query_params: {
      account_id: accountId,
      from: Math.floor(startTime / MS_PER_HOUR) * (MS_PER_HOUR / 1000),
      to: Math.ceil(endTime / 1000),
    },
    isShort: true,
  };
}

const accountHourRow = z.object({ account_id: z.string(), hour: z.number() });

/** The marked hours of every account in a window: what an audit must leave out. */
export async function readAllStaleHours(warehouse: Warehouse, { startTime, endTime }: Window): Promise<Cell[]> {
  const statement = {
    name: 'read_all_stale_hours',
    query: `
SELECT DISTINCT account_id, arrayJoin(arrayFilter(hour -> hour >= {from: Int64} AND hour < {to: Int64}, marked)) AS hour
FROM
(
  SELECT account_id, ${HOURS} AS marked
  FROM ${TABLE}
  GROUP BY account_id, mark_id
  HAVING ${IS_OPEN}
)`,
    query_params: { from: startTime / 1000, to: endTime / 1000 },
  };
  const rows = await warehouse.read(statement, accountHourRow);
  return rows.map(({ account_id: accountId, hour }) => ({ accountId, bucket: hour * 1000 }));
}

/** After so long anybody repairs a mark: its writer has died, or cannot keep up. */
const ORPHANED_SECONDS = 60;
const IS_DUE = `(any(writer) = {writer: UUID} OR min(marked_at) < now() - ${ORPHANED_SECONDS})
    AND NOT has({left_alone: Array(String)}, account_id)`;

export interface OpenMarks {
  /** Hours that are marked, once for each mark. */
  readonly hours: number;
  /** The age of the oldest mark, 0 when there is none. */
  readonly oldestSeconds: number;
  /** Marks that this writer repairs: its own, and those of others that are old; not those of accounts that it leaves alone. */
  readonly due: number;
}

const openMarksRow = z.object({ open_hours: z.coerce.number(), oldest: z.number(), due_marks: z.coerce.number() });

/** @param leftAlone accounts whose marks are not due */
export async function readOpenMarks(
  warehouse: Warehouse,
  writer: string,
  leftAlone: readonly string[] = [],
): Promise<OpenMarks> {
  const [row] = await warehouse.read(
    {
      name: 'read_open_marks',
      query: `
SELECT
  sum(mark_hours) AS open_hours,
  toUInt32(greatest(0, dateDiff('second', min(since), now()))) AS oldest,
  countIf(is_due) AS due_marks
FROM
(
  SELECT length(any(hours)) AS mark_hours, min(marked_at) AS since, ${IS_DUE} AS is_due
  FROM ${TABLE}
  GROUP BY account_id, mark_id
  HAVING ${IS_OPEN}
)`,
      query_params: { writer, left_alone: leftAlone },
    },
    openMarksRow,
  );
  const { open_hours: hours = 0, oldest = 0, due_marks: due = 0 } = row ?? {};
  return { hours, oldestSeconds: hours > 0 ? oldest : 0, due };
}

const markRow = z.object({ account_id: z.string(), mark_id: z.string(), mark_hours: z.array(z.number()) });

/**
 * Marks that this writer repairs, of about so many hours, and at least one if there is any. An account's marks come together.
 * Accounts come in another order each time: one whose repair fails does not hold up the others for ever, and processes
 * that repair the marks of a dead one begin with different ones.
 *
 * @param leftAlone accounts whose marks are not due
 */
export async function readDueMarks(
  warehouse: Warehouse,
  writer: string,
  hours: number,
  leftAlone: readonly string[],
): Promise<Mark[]> {
  const statement = {
    name: 'read_due_marks',
    query: `
SELECT account_id, mark_id, mark_hours
FROM
(
  SELECT
    account_id,
    mark_id,
    ${HOURS} AS mark_hours,
    sum(length(mark_hours)) OVER (ORDER BY sipHash64(account_id, {order: UInt32}), account_id, mark_id) AS hours_until
  FROM ${TABLE}
  GROUP BY account_id, mark_id
  HAVING ${IS_OPEN} AND ${IS_DUE}
)
WHERE hours_until - length(mark_hours) < {hours: UInt32}`,
    query_params: { writer, hours, left_alone: leftAlone, order: Math.floor(Math.random() * 2 ** 32) },
  };
  const rows = await warehouse.read(statement, markRow);
  return rows.map(({ account_id: accountId, mark_id: markId, mark_hours }) => ({
    accountId,
    markId,
    hours: mark_hours.map((second) => second * 1000),
  }));
}
