/**
 * Tracks dirty hours. An hour of an account is dirty if its rollup row (the stored sums of its usage) may lack acknowledged events. Queries
 * read dirty hours from the events instead. A writer (a worker that stores events) marks an hour as dirty before it acknowledges, if the
 * hour is below `sealingUntil`, even if it has no rollup row yet. A maintainer recomputes the rollup rows of marked hours, and then clears
 * the marks. A sealer, which computes the rows of past hours and days, also marks hours whose rows exceed the server's limits.
 *
 * Claim: a response contains every event that was acknowledged when its query began, and contains each event once. The protocol:
 *
 * - A sealer publishes `sealingUntil`, takes its snapshot of the events, writes rollup rows, marks the hours of the rows that it could not
 *   write (for a day: the first hour), and publishes `sealedUntil`.
 * - A writer stores its events, then reads `sealingUntil`, then marks the hours below it, then acknowledges.
 * - A query first reads `sealedUntil`, then the marks of all its accounts, then the rows. The dirty hours of each account are part of the
 *   statement's text, so every hour of an account is read from exactly one source. If the list would be too long, a few windows cover the
 *   dirty hours, and the statement reads them from the events for every account. Reading an hour from the events needs no mark.
 * - A maintainer reads marks, writes the hourly rows, then reads the daily `sealingUntil`, then writes the daily rows below it, and then
 *   clears exactly the marks that it read.
 *
 * The query's value of `sealedUntil` may be old, because readable.ts keeps a value for two seconds. The watermark only rises, so every hour
 * below an old value is also below the current value, and the proof below holds for this hour. An older value only makes the query read
 * more hours from the events.
 *
 * Proof for hours. Take an event that was acknowledged before the query began, and whose hour the query reads from its rollup row. So the
 * hour is below `sealedUntil`, and the query saw no mark. There are two cases:
 *
 * 1. The event's writer read a `sealingUntil` that was not above the hour. Then the event was stored before any sealer of the hour took its
 *    snapshot. Before the sealer published `sealedUntil`, it either wrote the row, which contains the event, or marked the hour. The query
 *    read `sealedUntil` before the marks, so it would have seen that mark unless the mark was cleared.
 * 2. The writer marked the hour before it acknowledged, so the query would have seen that mark unless the mark was cleared.
 *
 * If a mark was cleared, a maintainer had read the mark and then took its snapshot, so the snapshot contains the event. The maintainer
 * wrote the row before it cleared the mark. Any row that replaces this row has a higher version, so it comes from a later snapshot.
 *
 * Proof for days. A day is read from its row only if none of its hours is dirty. By the proof above, the hourly row with the event was
 * written. Either the hourly row was written before the snapshot of the day's sealer, so the day's row contains the event. Or it was
 * written after that sealer had published the daily `sealingUntil`. Then the maintainer read that value, and wrote the day's row before it
 * cleared the mark. If the sealer marked the day's first hour instead of writing the day, the same holds for the maintainer that cleared
 * this mark: it read the marks and the hourly rows after the sealer had published the daily `sealingUntil`.
 *
 * The proof does not need a single maintainer: any number of maintainers, late or killed at any point, do no harm. If a writer dies before
 * its mark is durable, the event is not acknowledged, and its redelivery marks the hour again. A cleared key is never written again on
 * purpose. A mark that was sent twice may arrive after its clearing, which only costs a recomputation. When marks of rows that are too
 * large are cleared, the same insert marks the hours again with a later due time.
 */
import { randomUUID } from 'node:crypto';
import { type EpochMs, MS_PER_HOUR, type Window } from '@meterline/catalog';
import { z } from 'zod';
import { type Accounts, accountsCondition, accountsParameters } from '../accounts.js';
import { readBounds } from '../bounds.js';
import { insertRows, type Statement, type Warehouse } from '../clickhouse/connection.js';
import { listedBytes, MAX_LIST_BYTES } from '../clickhouse/list-size.js';
import { type EventRows, hoursBefore } from '../events/event-rows.js';
import type { AccountHours, RollupKey } from './rollup-rows.js';
import type { DirtyHours } from './watermarks.js';

const TABLE = 'dirty_hours';
/** How long to wait before recomputing rollup rows that exceed the server's limits. Each attempt uses all the time or memory allowed. */
const TOO_LARGE_DUE_SECONDS = 3_600;

/**
 * Marks the hours of stored events as dirty, if they are before `sealingUntil`. Call this before acknowledging the job. Repeating the call
 * does no harm.
 * @param sealingUntil the hourly watermark, read after the insert succeeded
 */
export async function markDirtyHours(
  warehouse: Warehouse,
  parts: readonly EventRows[],
  sealingUntil: EpochMs,
): Promise<readonly AccountHours[]> {
  const dirty = hoursBefore(sealingUntil, parts);
  await insertRows(warehouse, TABLE, setMarks(dirty, 0), 'mark_dirty_hours');
  return dirty;
}

/** Marks all hours before `sealingUntil` in which the account has events on this shard. Needed after an erasure, which may remove marks. */
export async function markHoursOfEvents(shard: Warehouse, accountId: string): Promise<void> {
  const query = `
SELECT DISTINCT account_id AS accountId, toUnixTimestamp(event_hour) AS bucket
FROM usage_events
WHERE account_id = {account_id: String}`;
  const rows = await shard.read(
    { name: 'read_event_hours', query, query_params: { account_id: accountId } },
    markedHourRow,
  );
  // Read the watermark after the events, as a worker does. The rollup rows of hours at or after it are computed later, with these events.
  const { hourly } = await readBounds(shard);
  const sealed = rows.filter(({ bucket }) => bucket < hourly.sealingUntil);
  await insertRows(shard, TABLE, setMarks(hoursOf(sealed), 0), 'mark_dirty_hours');
}

/** Returns one row per account with all its hours. The rows share a mark ID, so two rows of one account would have the same key. */
function setMarks(dirty: readonly AccountHours[], dueInSeconds: number) {
  const markId = randomUUID();
  return dirty.map(({ accountId, hours }) => ({
    account_id: accountId,
    mark_id: markId,
    hours: hours.map((hour) => hour / 1000),
    due_in: dueInSeconds,
    sign: 1,
  }));
}

/**
 * Marks the hours of rollup rows that queries must not read, with a due time an hour later. A sealer marks the rows that it could not
 * compute before it raises `sealedUntil` above them. To exclude a day's row from queries, one dirty hour of the day is enough.
 */
export async function markUnreadable(warehouse: Warehouse, rows: readonly RollupKey[]): Promise<MarkKey[]> {
  const marks = setMarks(hoursOf(rows), TOO_LARGE_DUE_SECONDS);
  await insertRows(warehouse, TABLE, marks, 'mark_dirty_hours');
  return marks.map(({ account_id, mark_id }) => ({ accountId: account_id, markId: mark_id }));
}

export function hoursOf(rows: readonly RollupKey[]): AccountHours[] {
  const hours = new Map<string, EpochMs[]>();
  for (const { accountId, bucket } of rows) {
    const known = hours.get(accountId);
    if (known) known.push(bucket);
    else hours.set(accountId, [bucket]);
  }
  return Array.from(hours, ([accountId, ofAccount]) => ({ accountId, hours: ofAccount }));
}

/**
 * Clears marks of dirty hours, so that queries read the rollup rows again. Call this only when the rollup rows of all marked hours and of
 * their days are durable.
 * @param left marked hours whose rollup rows are too large. The same insert marks them again, due later.
 */
export async function clearMarks(
  warehouse: Warehouse,
  marks: readonly MarkKey[],
  left: readonly AccountHours[] = [],
): Promise<void> {
  const cleared = marks.map(({ accountId, markId }) => ({
    account_id: accountId,
    mark_id: markId,
    hours: [],
    due_in: 0,
    sign: -1,
  }));
  await insertRows(warehouse, TABLE, [...setMarks(left, TOO_LARGE_DUE_SECONDS), ...cleared], 'clear_dirty_hours');
}

/** SQL: whether a mark is still open. A mark has a row with the sign 1, and once it is cleared, another with the sign -1. */
const IS_OPEN = 'min(sign) > 0';
/** The marked hours, in seconds since 1970. */
const HOURS = "CAST(any(hours), 'Array(UInt32)')";

/** Maximum length of a list of hours. A longer list would exceed {@link MAX_LIST_BYTES} even with the shortest account IDs. */
const MAX_LISTED_HOURS = Math.floor(MAX_LIST_BYTES / listedBytes(''));

/** Reads the dirty hours with one statement without subqueries, or with two if there are too many to list (docs/decisions/0010). */
export async function readDirtyHours(warehouse: Warehouse, accounts: Accounts, window: Window): Promise<DirtyHours> {
  const hours = await readMarkedHours(warehouse, accounts, window, MAX_LISTED_HOURS + 1);
  const bytes = hours.reduce((sum, { accountId }) => sum + listedBytes(accountId), 0);
  if (bytes <= MAX_LIST_BYTES) return hours;
  const all = await warehouse.read(dirtyHoursStatement(accounts, window, [MARKED_HOUR]), hourRow);
  return { windows: windowsOf(ascending(all).map(({ bucket }) => bucket)) };
}

/** Maximum number of windows that cover dirty hours. Each window adds two segments to a query's statement. */
const MAX_WINDOWS = 10;

/** Covers the hours with at most {@link MAX_WINDOWS} windows, and leaves out the largest gaps. @param hours ascending, distinct */
export function windowsOf(hours: readonly EpochMs[]): Window[] {
  const gapBefore = (index: number) => (hours[index] ?? 0) - (hours[index - 1] ?? 0);
  const starts = Array.from(hours.keys())
    .filter((index) => index > 0 && gapBefore(index) > MS_PER_HOUR)
    .sort((a, b) => gapBefore(b) - gapBefore(a))
    .slice(0, MAX_WINDOWS - 1)
    .sort((a, b) => a - b);
  const ends = [...starts, hours.length];
  return hours.length === 0
    ? []
    : [0, ...starts].map((start, window) => ({
        startTime: hours[start] ?? 0,
        endTime: (hours[(ends[window] ?? 0) - 1] ?? 0) + MS_PER_HOUR,
      }));
}

/** Reads the hours that are marked as dirty, for accounts in a window, in ascending order. A `limit` of 0 means no limit. */
export async function readMarkedHours(
  warehouse: Warehouse,
  accounts: Accounts,
  window: Window,
  limit = 0,
): Promise<RollupKey[]> {
  const statement = dirtyHoursStatement(accounts, window, ['account_id AS accountId', MARKED_HOUR], limit);
  return ascending(await warehouse.read(statement, markedHourRow));
}

function ascending<Hour extends Pick<RollupKey, 'bucket'>>(hours: readonly Hour[]): Hour[] {
  return [...hours].sort((a, b) => a.bucket - b.bucket);
}

const MARKED_HOUR = `arrayJoin(arrayFilter(hour -> hour >= {from: Int64} AND hour < {to: Int64}, ${HOURS})) AS bucket`;
const hourRow = z.object({ bucket: z.number().transform((second) => second * 1000) });
const markedHourRow = hourRow.extend({ accountId: z.string() });

function dirtyHoursStatement(
  accounts: Accounts,
  { startTime, endTime }: Window,
  columns: readonly string[],
  limit = 0,
): Statement {
  const [condition] = accountsCondition(accounts);
  return {
    name: 'read_dirty_hours',
    query: `
SELECT DISTINCT ${columns.join(', ')}
FROM ${TABLE}${condition === undefined ? '' : `\nWHERE ${condition}`}
GROUP BY account_id, mark_id
HAVING ${IS_OPEN}${limit > 0 ? '\nLIMIT {limit: UInt32}' : ''}`,
    query_params: {
      ...accountsParameters(accounts),
      from: Math.floor(startTime / MS_PER_HOUR) * (MS_PER_HOUR / 1000),
      to: Math.ceil(endTime / 1000),
      ...(limit > 0 && { limit }),
    },
  };
}

/** Selects the marks of hours that are still dirty. If one mark of an account must wait, for a rollup row that is too large, all of them wait. */
const OPEN_MARKS = `
    SELECT
      account_id,
      mark_id,
      ${HOURS} AS mark_hours,
      min(marked_at) AS since,
      max(min(marked_at) + any(due_in)) OVER (PARTITION BY account_id) <= now() AS is_due
    FROM ${TABLE}
    GROUP BY account_id, mark_id
    HAVING ${IS_OPEN}`;

export interface OpenMarks {
  /** The number of marked hours. An hour with several marks counts once per mark. */
  readonly hours: number;
  readonly oldestSeconds: number;
}

const openMarksRow = z.object({ open_hours: z.coerce.number(), oldest: z.number() });

export async function readOpenMarks(shard: Warehouse): Promise<OpenMarks> {
  const query = `
SELECT
  sum(length(mark_hours)) AS open_hours,
  toUInt32(greatest(0, dateDiff('second', min(since), now()))) AS oldest
FROM
(${OPEN_MARKS}
)`;
  const [row] = await shard.read({ name: 'read_open_marks', query }, openMarksRow);
  const { open_hours: hours = 0, oldest = 0 } = row ?? {};
  return { hours, oldestSeconds: hours > 0 ? oldest : 0 };
}

const mark = z.object({
  accountId: z.string(),
  markId: z.string(),
  hours: z.array(z.number().transform((second) => second * 1000)),
});

type Mark = z.output<typeof mark>;
type MarkKey = Pick<Mark, 'accountId' | 'markId'>;

/**
 * Reads marks that may be processed now, up to a total of about `hours` dirty hours, but at least one mark. The order of accounts is random,
 * so that a failing account does not block others forever. The marks of one account come together.
 */
export async function readDueMarks(shard: Warehouse, hours: number): Promise<Mark[]> {
  const statement = {
    name: 'read_due_marks',
    query: `
SELECT account_id AS accountId, mark_id AS markId, mark_hours AS hours
FROM
(
  SELECT
    account_id,
    mark_id,
    mark_hours,
    sum(length(mark_hours)) OVER (ORDER BY sipHash64(account_id, {order: UInt32}), account_id, mark_id) AS hours_until
  FROM
  (${OPEN_MARKS}
  )
  WHERE is_due
)
WHERE hours_until - length(mark_hours) < {hours: UInt32}`,
    query_params: { hours, order: Math.floor(Math.random() * 2 ** 32) },
  };
  return shard.read(statement, mark);
}
