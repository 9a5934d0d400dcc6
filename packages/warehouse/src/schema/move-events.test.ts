import { randomUUID } from 'node:crypto';
import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { type ClientRequest, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { MS_PER_HOUR } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/priced-event.js';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/stack.js';
import { createWarehouse, type Warehouse, type WarehouseOptions } from '../clickhouse/connection.js';
import { isMissing } from '../clickhouse/errors.js';
import { insertStatement } from '../clickhouse/insert.js';
import { EventRows, type PricedEvent } from '../events/event-rows.js';
import { Names } from '../events/names.js';
import { encodeUsageEvents, insertUsageEvents, USAGE_EVENTS } from '../events/usage-events.js';
import { readCellDifferences } from '../operations/audit.js';
import { sealNext } from '../rollups/sealing.js';
import { MIGRATIONS_DIRECTORY, migrate, readMigrations } from './migrator.js';
import { moveEvents, NEW_EVENTS_MIGRATION } from './move-events.js';

const DAY = Date.UTC(2025, 8, 30, 20);

let site: TestDatabase;
let earlier: string;
let options: WarehouseOptions;
let warehouse: Warehouse;

beforeAll(async () => {
  site = await createTestDatabase();
  earlier = await mkdtemp(join(tmpdir(), 'migrations-'));
  const files = (await readdir(MIGRATIONS_DIRECTORY)).filter((name) => name < NEW_EVENTS_MIGRATION);
  for (const name of files) await copyFile(join(MIGRATIONS_DIRECTORY, name), join(earlier, name));
});
afterAll(async () => {
  await site.drop();
  await rm(earlier, { recursive: true });
});

/** In a database as the release before has left it: three parts, in two months. */
let stored: PricedEvent[];
beforeEach(async () => {
  options = { ...site.options, database: `test_${randomUUID().replaceAll('-', '')}` };
  await migrate(options, undefined, earlier);
  warehouse = createWarehouse(options);
  stored = Array.from({ length: 60 }, (_, index) =>
    pricedEvent({
      accountId: `account-${index % 3}`,
      timestamp: DAY + (index % 12) * MS_PER_HOUR,
      usage: BigInt(index) * 10n ** 9n,
      priceBook: index % 2,
    }),
  );
  await execute(warehouse, 'SYSTEM STOP MERGES usage_events');
  await insertUsageEvents(warehouse, stored);
  const [first, second, third] = stored as [PricedEvent, PricedEvent, PricedEvent];
  const later = [
    { ...first, revision: 1, usage: 5n },
    { ...second, revision: 3, voided: true },
    { ...third, priceRevision: 2, cost: 7n },
  ];
  await insertUsageEvents(warehouse, later);
});
afterEach(async () => {
  await execute(site.warehouse, `DROP DATABASE ${options.database} SYNC`);
  await warehouse.close();
});

const ALL_ROWS = 'SELECT *, event_hour, toString(row_version) AS version FROM usage_events FINAL ORDER BY event_id';
const rows = () => select(warehouse, ALL_ROWS);

const NEW_ORDER = 'account_id, event_hour, UUIDToNum(event_id)';

/** What is there in the end, whatever happened on the way. */
async function expectMoved(expected: readonly unknown[]): Promise<void> {
  expect(await rows()).toEqual(expected);
  const tables =
    "SELECT name, sorting_key, toUInt32(total_rows) AS rows FROM system.tables WHERE database = currentDatabase() AND name LIKE 'usage_events%' ORDER BY name";
  expect(await select(warehouse, tables)).toEqual([
    { name: 'usage_events', sorting_key: NEW_ORDER, rows: expect.anything() },
    { name: 'usage_events_before', sorting_key: 'account_id, event_hour, event_id', rows: 0 },
  ]);
}

/** Stops before statement number `stop`; `meanwhile` is what happens there. */
function interrupted(stop: number, meanwhile: () => Promise<void>): { warehouse: Warehouse; statements: () => number } {
  let count = 0;
  const step = async () => {
    if (count === stop) await meanwhile();
    count += 1;
  };
  const stopping: Warehouse = {
    read: (statement, row) => step().then(() => warehouse.read(statement, row)),
    run: (statement, body) => step().then(() => warehouse.run(statement, body)),
    within: () => stopping,
    ping: () => warehouse.ping(),
    close: () => Promise.resolve(),
  };
  return { warehouse: stopping, statements: () => count };
}

const ignore = () => {};

/** The migration's own statement has run. */
async function createNext(): Promise<void> {
  const migration = (await readMigrations(MIGRATIONS_DIRECTORY)).find(({ name }) => name === NEW_EVENTS_MIGRATION);
  await execute(warehouse, migration?.sql ?? '');
}

/** Of one process alone; it stops nowhere before the last one. */
const STATEMENTS = 19;
const STOPS = Array.from({ length: STATEMENTS }, (_, index) => index);
/** The short form strikes at every sixth, in turn: there it either dies or is overtaken. */
const everyTwelfth = (first: number) => STOPS.filter((index) => index % 12 === first);
const IS_SHORT = process.env.METERLINE_TEST_SHORT !== undefined;
const CRASHES = IS_SHORT ? everyTwelfth(2) : STOPS;
const OVERTAKEN = IS_SHORT ? everyTwelfth(8) : STOPS;

/** It answers with what there is, or not at all; whether it could store an event. */
async function earlierReleaseStores(before: readonly unknown[]): Promise<boolean> {
  try {
    expect(await rows()).toEqual(before);
    await insertUsageEvents(warehouse, [pricedEvent({ accountId: 'late' })]);
    return true;
  } catch (error) {
    if (!isMissing(error)) throw error;
    return false;
  }
}

describe('moving the events', () => {
  it('keeps every row with its version, and cells and late revisions go on', async () => {
    while (await sealNext(warehouse, DAY + 48 * MS_PER_HOUR));
    const before = await rows();
    const lines: string[] = [];
    await migrate(options, (line) => lines.push(line));
    await expectMoved(before);
    expect(lines).toEqual(['moving the events to a table in another order: 63 rows to go']);
    const window = { startTime: 0, endTime: DAY + 24 * MS_PER_HOUR };
    expect(await readCellDifferences(warehouse, 'hourly', { window })).toEqual([]);

    const [first] = stored as [PricedEvent];
    await insertUsageEvents(warehouse, [first, { ...first, revision: 2, usage: 1n }]);
    expect(await rows()).toHaveLength(60);
    expect(await select(warehouse, ALL_ROWS)).toContainEqual(
      expect.objectContaining({ event_id: first.eventId, revision: 2, usage: '0.000000001' }),
    );
  });

  it('makes the schema of a new database, but for the old table, which stays empty', async () => {
    const create = `
SELECT name, replaceAll(create_table_query, database || '.', '') AS create
FROM system.tables
WHERE database = currentDatabase() AND name != 'usage_events_before'
ORDER BY name`;
    await migrate(options);
    const { warehouse: other, drop } = await createTestDatabase();
    try {
      expect(await select(warehouse, create)).toEqual(await select(other, create));
      // Nothing was moved there.
      expect(await select(other, "SHOW TABLES LIKE 'usage_events%'")).toEqual([{ name: 'usage_events' }]);
    } finally {
      await drop();
    }
  });

  it('by four processes at once', async () => {
    const before = await rows();
    await Promise.all(Array.from({ length: 4 }, () => migrate(options)));
    await expectMoved(before);
    expect(await migrate(options)).toEqual([]);
  });

  it.each(CRASHES)(
    'goes on after a crash before statement %i; until then an earlier release stores or fails',
    async (stop) => {
      const before = await rows();
      await createNext();
      let isStored = false;
      const dies = interrupted(stop, async () => {
        isStored = await earlierReleaseStores(before);
        throw new Error('killed');
      });
      await expect(moveEvents(dies.warehouse, ignore)).rejects.toThrow('killed');
      await migrate(options);
      expect(await rows()).toHaveLength(isStored ? 61 : 60);
      await execute(warehouse, "ALTER TABLE usage_events DELETE WHERE account_id = 'late'");
      await expectMoved(before);
    },
  );

  it.each(OVERTAKEN)('changes nothing when another process has done it all before statement %i', async (stop) => {
    const before = await rows();
    await createNext();
    await moveEvents(interrupted(stop, async () => void (await migrate(options))).warehouse, ignore);
    await expectMoved(before);
  });

  it('takes the statements that these tests stop before', async () => {
    await createNext();
    const alone = interrupted(-1, () => Promise.resolve());
    await moveEvents(alone.warehouse, ignore);
    expect(alone.statements()).toBe(STATEMENTS);
  });

  it('waits for an insert that has begun before', async () => {
    const insert = beginInsert(Array.from({ length: 40_000 }, () => pricedEvent({ accountId: 'late' })));
    await until("SELECT 1 FROM system.processes WHERE current_database = currentDatabase() AND query_kind = 'Insert'");
    const lines: string[] = [];
    const moved = migrate(options, (line) => lines.push(line));
    while (lines.length === 0) await delay(20);
    expect(lines).toEqual(['waiting for 1 statements that began before usage_events was moved']);
    expect(await insert.end()).toBe(200);
    await moved;
    expect(await rows()).toHaveLength(40_060);
  });

  it('waits for an erasure that has begun before', async () => {
    await execute(warehouse, 'SYSTEM STOP MERGES usage_events');
    const query = "ALTER TABLE usage_events DELETE WHERE account_id = 'account-1'";
    await warehouse.run({ name: 'erase', query, query_params: {}, settings: { mutations_sync: '0' } });
    const lines: string[] = [];
    const moved = migrate(options, (line) => lines.push(line));
    while (lines.length === 0) await delay(20);
    expect(lines).toEqual(['waiting for 1 statements that began before usage_events was moved']);
    await execute(warehouse, 'SYSTEM START MERGES usage_events_before');
    await moved;
    expect(await select(warehouse, 'SELECT DISTINCT account_id FROM usage_events ORDER BY account_id')).toEqual([
      { account_id: 'account-0' },
      { account_id: 'account-2' },
    ]);
  });

  it('fails when there are two tables in the old order, and moves nothing', async () => {
    await execute(warehouse, 'CREATE TABLE usage_events_before AS usage_events');
    const before = await rows();
    await expect(migrate(options)).rejects.toThrow('could not be moved to its new order: still begun');
    expect(await rows()).toEqual(before);
  });
});

/** An insert whose rows have not all arrived. */
function beginInsert(events: readonly PricedEvent[]): { end(): Promise<number | undefined> } {
  const { url, user, password, database } = options;
  const search = new URLSearchParams({ database, query: insertStatement(USAGE_EVENTS), wait_end_of_query: '1' });
  const block = encodeUsageEvents([EventRows.of(events, new Names())]);
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password };
  const sent: ClientRequest = request(`${url}/?${search}`, { method: 'POST', headers });
  const status = new Promise<number | undefined>((resolve, reject) => {
    sent.on('error', reject).on('response', (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode));
    });
  });
  // The server begins when it has received a megabyte.
  const half = block.length / 2;
  sent.write(block.subarray(0, half));
  return {
    end: () => {
      sent.end(block.subarray(half));
      return status;
    },
  };
}

async function until(query: string): Promise<void> {
  while ((await select(warehouse, query)).length === 0) await delay(20);
}
