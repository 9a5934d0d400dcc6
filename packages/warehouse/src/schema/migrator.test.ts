import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { pricedEvent } from '../../../../test/priced-event.js';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/stack.js';
import { createWarehouse } from '../clickhouse/connection.js';
import { insertUsageEvents } from '../events/usage-events.js';
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

  it('again runs nothing', () =>
    withFreshDatabase(async () => {
      await migrate(fresh);
      expect(await migrate(fresh)).toEqual([]);
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
      expect(await migrate(fresh, undefined, directory)).toEqual(['0001_first.sql']);
      await createFile('0002_second.sql', 'second');
      expect(await migrate(fresh, undefined, directory)).toEqual(['0002_second.sql']);
    }));

  it('leaves no part that cannot be merged with later ones: all have the projection by_hour', () =>
    withFreshDatabase(async () => {
      const before = await mkdtemp(join(tmpdir(), 'migrations-'));
      const warehouse = createWarehouse(fresh);
      try {
        for (const name of FILES.filter((file) => file < '0013'))
          await copyFile(join(MIGRATIONS_DIRECTORY, name), join(before, name));
        await migrate(fresh, undefined, before);
        await insertUsageEvents(warehouse, [pricedEvent()]);
        await migrate(fresh);
        await insertUsageEvents(warehouse, [pricedEvent()]);
        // Mutations run in the background.
        const mutating = 'SELECT mutation_id FROM system.mutations WHERE database = currentDatabase() AND NOT is_done';
        while ((await select(warehouse, mutating)).length > 0) await delay(50);
        await execute(warehouse, 'OPTIMIZE TABLE usage_events FINAL SETTINGS optimize_throw_if_noop = 1');
        const parts =
          "SELECT rows, projections FROM system.parts WHERE active AND database = currentDatabase() AND table = 'usage_events'";
        expect(await select(warehouse, parts)).toEqual([{ rows: '2', projections: ['by_hour'] }]);
      } finally {
        await warehouse.close();
        await rm(before, { recursive: true });
      }
    }));

  it('refuses an edited file by name and runs nothing', () =>
    withFreshDatabase(async () => {
      await createFile('0001_first.sql', 'first');
      await rm(join(directory, '0002_second.sql'), { force: true });
      await migrate(fresh, undefined, directory);
      await createFile('0001_first.sql', 'renamed');
      await createFile('0002_second.sql', 'second');
      await expect(migrate(fresh, undefined, directory)).rejects.toThrow(
        'migration 0001_first.sql was edited after it had run',
      );
      expect(await rows(`SHOW TABLES FROM ${fresh.database}`)).toEqual([
        { name: 'first' },
        { name: 'schema_migrations' },
      ]);
    }));

  it('refuses, by name, a database that has run a file which is missing', () =>
    withFreshDatabase(async () => {
      await createFile('0001_first.sql', 'first');
      await createFile('0002_second.sql', 'second');
      await migrate(fresh, undefined, directory);
      await rm(join(directory, '0002_second.sql'));
      await expect(migrate(fresh, undefined, directory)).rejects.toThrow(
        'migration 0002_second.sql has run on this database',
      );
    }));

  it('stops at a statement that fails and records only what ran before', () =>
    withFreshDatabase(async () => {
      await createFile('0001_first.sql', 'first');
      await writeFile(join(directory, '0002_second.sql'), 'CREATE TABLE IF NOT EXISTS second (x NoSuchType)');
      await expect(migrate(fresh, undefined, directory)).rejects.toThrow();
      expect(await rows(`SELECT name FROM ${fresh.database}.schema_migrations`)).toEqual([{ name: '0001_first.sql' }]);
    }));

  it('makes acknowledged rows durable: every table writes through to the disk, but for answers kept for a day', async () => {
    const tables = await rows(
      `SELECT name FROM system.tables WHERE database = '${database.options.database}'
       AND engine LIKE '%MergeTree' AND create_table_query NOT LIKE '%fsync_after_insert = 1%'
       ORDER BY name`,
    );
    expect(tables).toEqual([{ name: 'metrics_results' }, { name: 'stored_answers' }]);
  });
});

describe('the connection', () => {
  it('waits for each insert, never skips one as a duplicate, and takes any number of partitions', async () => {
    const settings = await select(
      database.warehouse,
      `SELECT getSetting('async_insert') AS async_insert, getSetting('insert_deduplicate') AS insert_deduplicate,
              getSetting('max_partitions_per_insert_block') AS max_partitions`,
    );
    expect(settings.map((row) => Object.values(row).map(Number))).toEqual([[0, 0, 0]]);
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
