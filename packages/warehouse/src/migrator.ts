/** Brings a database to the schema of the files, once, whoever starts first. */
import { z } from 'zod';
import { createWarehouse, type Statement, type Warehouse, type WarehouseOptions } from './clickhouse/connection.js';
import { insertRows } from './clickhouse/insert.js';
import { MIGRATIONS_DIRECTORY, type Migration, MigrationError, readMigrations } from './migrations.js';

const CREATE_DATABASE = 'CREATE DATABASE IF NOT EXISTS {database: Identifier}';

const CREATE_HISTORY = `
CREATE TABLE IF NOT EXISTS schema_migrations
(
    version    UInt32,
    name       String,
    checksum   FixedString(64),
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY version
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`;

const READ_HISTORY: Statement = {
  name: 'read_schema_migrations',
  query: 'SELECT version, name, checksum FROM schema_migrations FINAL ORDER BY version',
  query_params: {},
};

const historyRow = z.object({ version: z.number(), name: z.string(), checksum: z.string() });
type AppliedMigration = z.output<typeof historyRow>;

/**
 * Creates the database if there is none and runs every migration that it lacks, in order.
 * Safe when several processes do so at once and when one dies in between (see migrations.ts).
 * @returns the names of the migrations that this call has run
 * @throws MigrationError when a file was edited after it ran, or the database has run a file that is not there
 */
export async function migrate(options: WarehouseOptions, directory = MIGRATIONS_DIRECTORY): Promise<string[]> {
  const migrations = await readMigrations(directory);
  await createDatabase(options);
  const warehouse = createWarehouse(options);
  try {
    await warehouse.run({ name: 'create_schema_migrations', query: CREATE_HISTORY, query_params: {} });
    const applied = await warehouse.read(READ_HISTORY, historyRow);
    const pending = pendingMigrations(migrations, applied);
    for (const migration of pending) await apply(warehouse, migration);
    return pending.map(({ name }) => name);
  } finally {
    await warehouse.close();
  }
}

/** The migrations still to run, after a check that history and files agree. */
export function pendingMigrations(
  migrations: readonly Migration[],
  applied: readonly AppliedMigration[],
): readonly Migration[] {
  for (const past of applied) {
    const file = migrations.find(({ version }) => version === past.version);
    if (!file) {
      throw new MigrationError(
        `migration ${past.name} has run on this database but its file is missing; start the release that has it`,
      );
    }
    if (file.checksum !== past.checksum) {
      throw new MigrationError(
        `migration ${file.name} was edited after it had run; restore the file and add a new migration instead`,
      );
    }
  }
  return migrations.filter(({ version }) => !applied.some((past) => past.version === version));
}

async function createDatabase(options: WarehouseOptions): Promise<void> {
  const server = createWarehouse({ ...options, database: 'default' });
  try {
    await server.run({
      name: 'create_database',
      query: CREATE_DATABASE,
      query_params: { database: options.database },
    });
  } finally {
    await server.close();
  }
}

async function apply(warehouse: Warehouse, { version, name, sql, checksum }: Migration): Promise<void> {
  await warehouse.run({ name: 'run_migration', query: sql, query_params: {} });
  await insertRows(warehouse, 'schema_migrations', [{ version, name, checksum }]);
}
