/**
 * Dirty hours: a writer that has stored events into hours that are sealed marks them, and acknowledges. So does a sealer with
 * rollup rows that are too large for the server's limits. Queries answer dirty hours from the events, until a maintainer has
 * recomputed their rows and cleared the marks.
 *
 * Why a response holds every event that was acknowledged when its query began, and each once:
 *
 * - A sealer publishes `sealingUntil`, takes its snapshot of the events, writes rollup rows, marks the hours of those that it
 *   could not write (of a day: its first hour), publishes `sealedUntil`.
 * - A writer stores its events, then reads `sealingUntil`, then marks the hours below it, then acknowledges.
 * - A query takes a reading of `sealedUntil` from any time before it reads the marks of all its accounts, and *then* reads these. Which hours are dirty of which account is part of its
 *   text, so no hour of an account is read from both sources or from neither. Of many it has the hours alone: then they are read
 *   from the events of every account, and nothing below needs a mark for that.
 * - A maintainer reads marks, writes the hours' rows, then reads the days' `sealingUntil`, writes the days' rows below it, and
 *   then clears exactly the marks that it has read.
 *
 * The reading of `sealedUntil` may be old: it only rises, so every hour below an older reading is below the current value too, and what is
 * said below holds of it. The older it is, the more a query reads from events. readable.ts keeps a reading for two seconds.
 *
 * Take an event that was acknowledged before the query, whose hour the query reads from its rollup row: the hour is below
 * `sealedUntil` and has no mark. Either its writer had read a `sealingUntil` not above the hour. Then the event was stored before
 * any sealer of the hour took its snapshot, and before `sealedUntil` was published the row was written, or the hour marked: then
 * the query, which knew `sealedUntil` before it read marks, would have found that mark, unless it is gone. Or the writer had
 * marked the hour, and the mark is gone. Of a mark that is gone: a maintainer has read it, so its snapshot, taken later, holds
 * the event, and the row was written before the mark was cleared. Any row that replaces it has a higher version: a later
 * snapshot.
 *
 * A day is read from its row only if none of its hours is dirty. Then the hour's row with the event was written either
 * before the snapshot of the sealer of the day, and is in it, or after that sealer had published the days' `sealingUntil`; then
 * the maintainer has read that, and has written the day before it cleared the mark. If that sealer has marked the day's first
 * hour instead of writing the day, the same holds of the maintainer that has cleared this mark: it has read marks, and the
 * hours' rows, after the sealer had published the days' `sealingUntil`.
 *
 * One maintainer runs at a time, but nothing rests on that: any number of them, late or killed anywhere, do no harm. An event
 * whose writer died before its mark was durable is not acknowledged, and its redelivery marks again. A key that is cleared is
 * never set on purpose again, and one that arrives late because it was sent twice costs a recomputation. Marks of rows that are
 * too large are cleared together with new ones for the same hours that are due later.
 */
import { randomUUID } from 'node:crypto';
import { type EpochMs, MS_PER_HOUR, type Window } from '@meterline/catalog';
import { z } from 'zod';
import { type Accounts, accountsCondition, accountsParameters, onlyAccount } from '../accounts.js';
import { readBounds } from '../bounds.js';
import { insertRows, type Statement, type Warehouse } from '../clickhouse/connection.js';
import { listedBytes, MAX_LIST_BYTES } from '../clickhouse/list-size.js';
import { type EventRows, hoursBefore } from '../events/event-rows.js';
import type { AccountBucket, AccountHours, RollupKey } from './rollup-rows.js';

const TABLE = 'dirty_hours';
/** When rows are tried again that the server's limits did not let be computed: each attempt takes as much as these allow. */
const TOO_LARGE_DUE_SECONDS = 3_600;

/**
 * Marks the hours of events that are durable, as far as they are sealed or being sealed. To be called before the job is acknowledged;
 * calling it again does no harm.
 * @param sealingUntil of hours, as read after the insert had succeeded
 * @returns what was marked: an account once
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

/** Marks the hours of all events of an account on a shard, as far as they are sealed or being sealed: marks may have been removed. */
export async function markHoursOfEvents(shard: Warehouse, accountId: string): Promise<void> {
  const query = `
SELECT DISTINCT account_id AS accountId, toUnixTimestamp(event_hour) AS bucket
FROM usage_events
WHERE account_id = {account_id: String}`;
  const rows = await shard.read(
    { name: 'read_event_hours', query, query_params: { account_id: accountId } },
    markedHourRow,
  );
  // After the events, like a writer: what a sealer has not begun to compute by then has them.
  const { hourly } = await readBounds(shard);
  const sealed = rows.filter(({ bucket }) => bucket < hourly.sealingUntil);
  await insertRows(shard, TABLE, setMarks(hoursOf(sealed), 0), 'mark_dirty_hours');
}

/** A row for each account, whatever the number of its hours: no two rows of an insert have the same key. */
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
 * Marks rows that nobody may read, and no maintainer recompute, for an hour: of a day its first hour, which is enough for the day
 * not to be read. A sealer marks those that it has not computed, before it raises `sealedUntil` above them.
 */
export async function markUnreadable(warehouse: Warehouse, rows: readonly RollupKey[]): Promise<MarkKey[]> {
  const marks = setMarks(hoursOf(rows), TOO_LARGE_DUE_SECONDS);
  await insertRows(warehouse, TABLE, marks, 'mark_dirty_hours');
  return marks.map(({ account_id, mark_id }) => ({ accountId: account_id, markId: mark_id }));
}

/** By account. */
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
 * To be called when the rows of all their hours, and of these hours' days, are durable.
 * @param left the hours among these whose rows are too large: they stay dirty, by a later mark, in the same insert
 */
export async function clearMarks(
  warehouse: Warehouse,
  marks: readonly MarkKey[],
  left: readonly AccountHours[] = [],
): Promise<void> {
  const cleared = marks.map(({ accountId, markId }) => ({
    ...{ account_id: accountId, mark_id: markId, hours: [], due_in: 0, sign: -1 },
  }));
  await insertRows(warehouse, TABLE, [...setMarks(left, TOO_LARGE_DUE_SECONDS), ...cleared], 'clear_dirty_hours');
}

/** Whether none of the rows of one key removes the mark. */
const IS_OPEN = 'min(sign) > 0';
/** As numbers: seconds since 1970. */
const HOURS = "CAST(any(hours), 'Array(UInt32)')";

/** The most marked hours of several accounts: beyond so many, or so much text, a statement has hours without accounts. */
const MOST_NAMED_HOURS = 2_000;

/**
 * The marked hours of accounts in a window, ascending: of several accounts each with its own, while a statement can name
 * them all. Of one account a short statement, of one level: see docs/decisions/0010.
 */
export async function readDirtyHours(
  warehouse: Warehouse,
  accounts: Accounts,
  window: Window,
): Promise<AccountBucket[]> {
  if (onlyAccount(accounts) === undefined) {
    const named = await readMarkedHours(warehouse, accounts, window, MOST_NAMED_HOURS + 1);
    const bytes = named.reduce((sum, { accountId }) => sum + listedBytes(accountId), 0);
    if (named.length <= MOST_NAMED_HOURS && bytes <= MAX_LIST_BYTES) return named;
  }
  const hours = await warehouse.read(dirtyHoursStatement(accounts, window, [MARKED_HOUR]), hourRow);
  return ascending(hours);
}

/** The marked hours of accounts in a window, ascending. @param limit how many at most */
export async function readMarkedHours(
  warehouse: Warehouse,
  accounts: Accounts,
  window: Window,
  limit = 0,
): Promise<RollupKey[]> {
  const statement = dirtyHoursStatement(accounts, window, ['account_id AS accountId', MARKED_HOUR], limit);
  return ascending(await warehouse.read(statement, markedHourRow));
}

function ascending<Bucket extends AccountBucket>(buckets: readonly Bucket[]): Bucket[] {
  return [...buckets].sort((a, b) => a.bucket - b.bucket);
}

const MARKED_HOUR = `arrayJoin(arrayFilter(hour -> hour >= {from: Int64} AND hour < {to: Int64}, ${HOURS})) AS bucket`;
const hourRow = z.object({ bucket: z.number().transform((second) => second * 1000) });
const markedHourRow = hourRow.extend({ accountId: z.string() });

/** @param window a window of any years @param limit 0: none */
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

/** An account of which any mark is due later waits until then with all: one of its rows is too large. */
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
  /** Hours that are marked, once for each mark. */
  readonly hours: number;
  /** The age of the oldest mark, 0 when there is none. */
  readonly oldestSeconds: number;
}

const openMarksRow = z.object({ open_hours: z.coerce.number(), oldest: z.number() });

/** On one shard. */
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

/** Some hours of one account that one insert has marked. */
type Mark = z.output<typeof mark>;
type MarkKey = Pick<Mark, 'accountId' | 'markId'>;

/**
 * Marks that are due on one shard, of about so many hours, and at least one if there is any. An account's marks come together.
 * Accounts come in another order each time: one whose recomputation fails does not hold up the others for ever.
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
