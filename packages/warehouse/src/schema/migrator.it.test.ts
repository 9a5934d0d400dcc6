import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { createWarehouse } from '../clickhouse/connection.js';
import { MIGRATIONS_DIRECTORY, migrate, readDatabaseId } from './migrator.js';

let database: TestDatabase;
let directory: string;
let fresh: TestDatabase['options'];
let count = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  directory = await mkdtemp(join(tmpdir(), 'migrations-'));
});
afterAll(async () => {
  await database.drop();
  await rm(directory, { recursive: true });
});
beforeEach(() => {
  count += 1;
  fresh = { ...database.options, database: `${database.options.database}_${count}` };
});

/** Works in a database that does not exist before, and is gone afterwards. */
async function withFreshDatabase(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } finally {
    await execute(database.warehouse, `DROP DATABASE IF EXISTS ${fresh.database} SYNC`);
  }
}

function rows(query: string): Promise<unknown[]> {
  return select(database.warehouse, query);
}

async function createFile(name: string, table: string): Promise<void> {
  await writeFile(
    join(directory, name),
    `CREATE TABLE IF NOT EXISTS ${table} (x UInt8) ENGINE = MergeTree ORDER BY x\n`,
  );
}

const FILES = (await readdir(MIGRATIONS_DIRECTORY)).filter((name) => name.endsWith('.sql')).sort();

describe('migrating', () => {
  it('creates the database and runs every file, in order', () =>
    withFreshDatabase(async () => {
      expect(await migrate(fresh)).toEqual(FILES);
      expect(await rows(`SELECT name FROM ${fresh.database}.schema_migrations ORDER BY version`)).toEqual(
        FILES.map((name) => ({ name })),
      );
    }));

  it('by eight processes at once brings one fresh database to the schema', () =>
    withFreshDatabase(async () => {
      const ran = await Promise.all(Array.from({ length: 8 }, () => migrate(fresh)));
      expect([...new Set(ran.flat())].sort()).toEqual(FILES);
      expect(await rows(`SELECT name FROM ${fresh.database}.schema_migrations FINAL ORDER BY version`)).toEqual(
        FILES.map((name) => ({ name })),
      );
      expect(await migrate(fresh)).toEqual([]);
    }));

  it('goes on after a crash between a statement and its record', () =>
    withFreshDatabase(async () => {
      await migrate(fresh);
      const last = FILES.at(-1);
      await execute(database.warehouse, `DELETE FROM ${fresh.database}.schema_migrations WHERE name = '${last}'`);
      expect(await migrate(fresh)).toEqual([last]);
      expect(await migrate(fresh)).toEqual([]);
    }));

  it('runs a file that a later release adds, and only that', () =>
    withFreshDatabase(async () => {
      await createFile('0001_first.sql', 'first');
      expect(await migrate(fresh, directory)).toEqual(['0001_first.sql']);
      await createFile('0002_second.sql', 'second');
      expect(await migrate(fresh, directory)).toEqual(['0002_second.sql']);
    }));

  it('refuses a database that another build has made, says what to do, and leaves it alone', () =>
    withFreshDatabase(async () => {
      await createFile('0001_first.sql', 'first');
      await rm(join(directory, '0002_second.sql'), { force: true });
      await migrate(fresh, directory);
      await createFile('0001_first.sql', 'another');
      await createFile('0002_second.sql', 'second');
      await expect(migrate(fresh, directory)).rejects.toThrow(
        `database ${fresh.database} was made by another build of Meterline, whose migration 0001_first.sql this one does not have; ` +
          'give this one a database of its own (CLICKHOUSE_DATABASE; npm start: METERLINE_DATA_DIR), or start the build that made it',
      );
      await expect(migrate(fresh)).rejects.toThrow('was made by another build');
      expect(await rows(`SHOW TABLES FROM ${fresh.database}`)).toEqual([
        { name: 'first' },
        { name: 'schema_migrations' },
      ]);
    }));

  it('stops at a statement that fails and records only what ran before', () =>
    withFreshDatabase(async () => {
      await createFile('0001_first.sql', 'first');
      await writeFile(join(directory, '0002_second.sql'), 'CREATE TABLE IF NOT EXISTS second (x NoSuchType)');
      await expect(migrate(fresh, directory)).rejects.toThrow();
      expect(await rows(`SELECT name FROM ${fresh.database}.schema_migrations`)).toEqual([{ name: '0001_first.sql' }]);
    }));

  it('makes acknowledged rows durable: every table writes through to the disk, but for result pages, which live for a day', async () => {
    const tables = await rows(
      `SELECT name FROM system.tables WHERE database = '${database.options.database}'
       AND engine LIKE '%MergeTree' AND create_table_query NOT LIKE '%fsync_after_insert = 1%'
       ORDER BY name`,
    );
    expect(tables).toEqual([{ name: 'result_pages' }]);
  });
});

const NOBODY = '00000000-0000-0000-0000-000000000000';

async function idOf({ options }: TestDatabase): Promise<string> {
  const warehouse = createWarehouse(options);
  try {
    return await readDatabaseId(warehouse);
  } finally {
    await warehouse.close();
  }
}

describe('the id of a database', () => {
  it('stays the same, is its own, and is another one once the database was dropped and created again', async () => {
    const [one, other] = [await createTestDatabase(), await createTestDatabase()];
    try {
      const first = await idOf(one);
      expect(first).not.toBe(NOBODY);
      expect(await idOf(one)).toBe(first);
      expect(await idOf(other)).not.toBe(first);
      await execute(one.warehouse, `DROP DATABASE ${one.options.database} SYNC`);
      await migrate(one.options);
      expect(await idOf(one)).not.toBe(first);
    } finally {
      await Promise.all([one.drop(), other.drop()]);
    }
  });
});
