import { readdir, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { testFolder } from '../../../../test/harness/test-folder.js';
import { createWarehouse } from '../clickhouse/connection.js';
import { MIGRATIONS_DIRECTORY, migrate, readDatabaseId } from './migrator.js';

const FILES = (await readdir(MIGRATIONS_DIRECTORY)).filter((name) => name.endsWith('.sql')).sort();

const database = testDatabase();
const folder = testFolder('each test');
/** A database that does not exist before, and is gone afterwards. */
let fresh: TestDatabase['options'];
let count = 0;
beforeEach(() => {
  count += 1;
  fresh = { ...database.options, database: `${database.options.database}_${count}` };
});
afterEach(() => execute(database.warehouse, `DROP DATABASE IF EXISTS ${fresh.database} SYNC`));

function rows(query: string): Promise<unknown[]> {
  return select(database.warehouse, query);
}

const namesOf = (files: readonly string[]) => files.map((name) => ({ name }));
const recorded = () => rows(`SELECT name FROM ${fresh.database}.schema_migrations FINAL ORDER BY version`);

function createFile(name: string, table: string, type = 'UInt8'): Promise<void> {
  const sql = `CREATE TABLE IF NOT EXISTS ${table} (x ${type}) ENGINE = MergeTree ORDER BY x\n`;
  return writeFile(folder(name), sql);
}

it('migrating by eight processes at once brings one fresh database to the schema, with every file in order', async () => {
  const ran = await Promise.all(Array.from({ length: 8 }, () => migrate(fresh)));
  expect([...new Set(ran.flat())].sort()).toEqual(FILES);
  expect(await recorded()).toEqual(namesOf(FILES));
  expect(await migrate(fresh)).toEqual([]);
});

it('migrating changes nothing the second time, so that a crash may fall between a statement and its record', async () => {
  expect(await migrate(fresh)).toEqual(FILES);
  const tables = `SELECT name, create_table_query, total_rows FROM system.tables WHERE database = '${fresh.database}' ORDER BY name`;
  await execute(database.warehouse, `INSERT INTO ${fresh.database}.result_pages (account_id) VALUES ('acme')`);
  await execute(database.warehouse, `INSERT INTO ${fresh.database}.usage_events (account_id) VALUES ('acme')`);
  const before = await rows(tables);
  await execute(database.warehouse, `TRUNCATE TABLE ${fresh.database}.schema_migrations`);
  expect(await migrate(fresh)).toEqual(FILES);
  expect(await rows(tables)).toEqual(before);
});

it('migrating runs a file that a later release adds, and only that', async () => {
  await createFile('0001_first.sql', 'first');
  expect(await migrate(fresh, folder())).toEqual(['0001_first.sql']);
  await createFile('0002_second.sql', 'second');
  expect(await migrate(fresh, folder())).toEqual(['0002_second.sql']);
});

it('migrating rejects a database that another build created, with instructions, and does not change the database', async () => {
  await createFile('0001_first.sql', 'first');
  await migrate(fresh, folder());
  await createFile('0001_first.sql', 'another');
  await createFile('0002_second.sql', 'second');
  await expect(migrate(fresh, folder())).rejects.toThrow(
    `database ${fresh.database} was made by another build of Meterline, whose migration 0001_first.sql this one does not have; ` +
      'give this one a database of its own (CLICKHOUSE_DATABASE; npm start: METERLINE_DATA_DIR), or start the build that made it',
  );
  await expect(migrate(fresh)).rejects.toThrow('was made by another build');
  expect(await rows(`SHOW TABLES FROM ${fresh.database}`)).toEqual(namesOf(['first', 'schema_migrations']));
});

it('migrating stops at a statement that fails and records only what ran before', async () => {
  await createFile('0001_first.sql', 'first');
  await createFile('0002_second.sql', 'second', 'NoSuchType');
  await expect(migrate(fresh, folder())).rejects.toThrow('NoSuchType');
  expect(await recorded()).toEqual(namesOf(['0001_first.sql']));
});

it('migrations make acknowledged rows durable: every table writes through to the disk, but for result pages, which live for a day', async () => {
  const tables = `SELECT name FROM system.tables WHERE database = '${database.options.database}' AND engine LIKE '%MergeTree'`;
  expect(await rows(`${tables} AND create_table_query NOT LIKE '%fsync_after_insert = 1%'`)).toEqual(
    namesOf(['result_pages']),
  );
});

it('the id of a database stays the same, is its own, and is another one once the database was dropped and created again', async () => {
  const idOf = async ({ options }: Pick<TestDatabase, 'options'>) => {
    const warehouse = createWarehouse(options);
    return readDatabaseId(warehouse).finally(() => warehouse.close());
  };
  const other = await createTestDatabase();
  const first = await idOf(other);
  expect(first).not.toBe('00000000-0000-0000-0000-000000000000');
  expect(await idOf(other)).toBe(first);
  expect(await idOf(database)).not.toBe(first);
  await execute(other.warehouse, `DROP DATABASE ${other.options.database} SYNC`);
  await migrate(other.options);
  expect(await idOf(other)).not.toBe(first);
  await other.drop();
});
