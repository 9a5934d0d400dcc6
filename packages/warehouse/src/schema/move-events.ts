/**
 * Puts the table of 0016 in the place of the `usage_events` of 0001, with all rows. Decision: docs/decisions/0040.
 *
 * The state is read from the tables alone, and only goes forward:
 *
 *     usage_events     usage_events_before   usage_events_next
 *     old order        -                     empty               begun
 *     -                rows not moved yet    rows moved          moving: who reads or writes usage_events fails
 *     new order        empty, for good       -                   done
 *
 * A RENAME fails when its source is missing or its target exists, so each of the two happens once, whichever process sends it and
 * however late: usage_events_before stays, empty, and no later RENAME can take usage_events away again. Moving a row twice
 * changes nothing, as a row inserted twice does not. So a process may die anywhere, and several may do this at once.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { hasCode, isMissing } from '../clickhouse/errors.js';

/** The migration whose statement creates the new table, and after which the rows are moved. */
export const NEW_EVENTS_MIGRATION = '0016_usage_events_by_time.sql';

const NEXT = 'usage_events_next';
const OLD_ORDER = 'account_id, event_hour, event_id';

/** Takes a line of text for a person. */
export type Report = (line: string) => void;

/** The migration's statement, for a database that has no table of events yet. */
export function createEvents(migrationSql: string): Statement {
  return statement('create_usage_events', migrationSql.replace(`EXISTS ${NEXT}\n`, 'EXISTS usage_events\n'));
}

/**
 * Resolves when `usage_events` is the new table, has all rows, and nobody moves any more.
 * @throws when it is not, also when `usage_events_before` was there already
 */
export async function moveEvents(warehouse: Warehouse, report: Report): Promise<void> {
  if ((await readState(warehouse)) === 'begun') await rename(warehouse, 'usage_events', 'usage_events_before');
  if ((await readState(warehouse)) === 'moving') {
    try {
      await moveRows(warehouse, report);
      await rename(warehouse, NEXT, 'usage_events');
    } catch (error) {
      // Another process has renamed the table that this one inserts into; if not, the state tells.
      if (!isMissing(error)) throw error;
    }
  }
  const state = await readState(warehouse);
  if (state !== 'done') throw new Error(`the rows of usage_events could not be moved to its new order: still ${state}`);
  // Empty: nobody moves rows there once usage_events exists. It is there if the database is new, or the migration ran again.
  await warehouse.run(statement('drop_next_usage_events', `DROP TABLE IF EXISTS ${NEXT}`));
}

type State = 'begun' | 'moving' | 'done';

async function readState(warehouse: Warehouse): Promise<State> {
  const query = "SELECT sorting_key FROM system.tables WHERE database = currentDatabase() AND name = 'usage_events'";
  const [table] = await warehouse.read(statement('read_events_order', query), z.object({ sorting_key: z.string() }));
  if (!table) return 'moving';
  return table.sorting_key === OLD_ORDER ? 'begun' : 'done';
}

/** TABLE_ALREADY_EXISTS. Source: ClickHouse src/Common/ErrorCodes.cpp. */
const TAKEN = '57';

/** Changes nothing when another process was faster. */
async function rename(warehouse: Warehouse, from: string, to: string): Promise<void> {
  try {
    await warehouse.run(statement('rename_usage_events', `RENAME TABLE ${from} TO ${to}`));
  } catch (error) {
    if (!isMissing(error) && !hasCode(error, TAKEN)) throw error;
  }
}

/**
 * Resolves when all rows are in {@link NEXT} and nobody writes to it any more.
 *
 * A process that had found `usage_events` before it was renamed may still write to it, or erase from it; that is waited for first.
 * Then its rows only become fewer. When there are none, another process may still be copying some that have been moved.
 * That is waited for as well: an erasure after the end would miss them.
 */
async function moveRows(warehouse: Warehouse, report: Report): Promise<void> {
  const reportSometimes = atMostEvery(REPORT_MS, report);
  await writersEnd(warehouse, reportSometimes);
  // Their merges would be work for nothing.
  await warehouse.run(statement('keep_old_parts', KEEP_PARTS));
  for (let parts = await readParts(warehouse); parts.length > 0; parts = await readParts(warehouse)) {
    const rows = parts.reduce((sum, part) => sum + part.rows, 0);
    reportSometimes(`moving the events to a table in another order: ${rows} rows to go`);
    // At random, so that several processes seldom move the same one.
    const part = parts[Math.floor(Math.random() * parts.length)];
    if (part) await movePart(warehouse, part);
  }
  await writersEnd(warehouse, reportSometimes);
}

const REPORT_MS = 5_000;

const KEEP_PARTS = 'ALTER TABLE usage_events_before MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1';

interface Part {
  readonly name: string;
  readonly rows: number;
}

async function readParts(warehouse: Warehouse): Promise<Part[]> {
  const query = `
SELECT name, rows
FROM system.parts
WHERE database = currentDatabase() AND table = 'usage_events_before' AND active AND rows > 0`;
  return warehouse.read(statement('read_old_parts', query), z.object({ name: z.string(), rows: z.coerce.number() }));
}

/** Of a statement: some seconds, and some 100 MB of memory. */
const STEP_ROWS = 500_000;

const COLUMNS = [
  ...[
    'account_id',
    'event_id',
    'timestamp',
    'event_hour',
    'workspace',
    'resource_type',
    'resource_name',
    'resource_uuid',
  ],
  ...['billing_dimension', 'usage', 'revision', 'voided', 'cost', 'price_revision', 'price_book', 'row_version'],
].join(', ');

const COPY = `
INSERT INTO ${NEXT} (${COLUMNS})
SELECT ${COLUMNS}
FROM usage_events_before
WHERE _part = {part: String} AND _part_offset >= {from: UInt64} AND _part_offset < {to: UInt64}
SETTINGS insert_allow_materialized_columns = 1`;

/** NO_SUCH_DATA_PART. Source: ClickHouse src/Common/ErrorCodes.cpp. */
const NO_SUCH_PART = '232';

/** Of a part that is gone, nothing is copied and nothing dropped. */
async function movePart(warehouse: Warehouse, { name, rows }: Part): Promise<void> {
  for (let from = 0; from < rows; from += STEP_ROWS)
    await warehouse.run(statement('move_usage_events', COPY, { part: name, from, to: from + STEP_ROWS }));
  try {
    await warehouse.run(statement('drop_old_part', `ALTER TABLE usage_events_before DROP PART '${name}'`));
  } catch (error) {
    if (!hasCode(error, NO_SUCH_PART)) throw error;
  }
}

/** All that Meterline runs has its database as the current one. */
const WRITERS = `
SELECT query_id AS id
FROM system.processes
WHERE current_database = currentDatabase() AND query_kind IN ('Insert', 'AsyncInsertFlush', 'Alter', 'Delete', 'Update')
UNION ALL
SELECT mutation_id AS id
FROM system.mutations
WHERE database = currentDatabase() AND table = 'usage_events_before' AND NOT is_done`;

const WAIT_MS = 200;

/**
 * Waits for all statements that write and are running now, and for mutations of the old table.
 * ClickHouse lists a statement before it looks for its table, and until what it wrote is committed.
 */
async function writersEnd(warehouse: Warehouse, report: Report): Promise<void> {
  const read = () => warehouse.read(statement('read_writers', WRITERS), z.object({ id: z.string() }));
  let waitedFor = await read();
  while (waitedFor.length > 0) {
    report(`waiting for ${waitedFor.length} statements that began before usage_events was moved`);
    await delay(WAIT_MS);
    const running = new Set((await read()).map(({ id }) => id));
    waitedFor = waitedFor.filter(({ id }) => running.has(id));
  }
}

function atMostEvery(milliseconds: number, report: Report): Report {
  let next = 0;
  return (line) => {
    if (Date.now() < next) return;
    next = Date.now() + milliseconds;
    report(line);
  };
}

function statement(name: string, query: string, query_params: Statement['query_params'] = {}): Statement {
  return { name, query, query_params };
}
