/**
 * Applies migrations to a database. Any number of processes may do so at once. Files are named `NNNN_name.sql`; the numbers start at 0001
 * and have no gaps. ClickHouse has no lock, so concurrent processes run the same files, and a process may crash between a statement and its
 * record. So each file holds a single statement that changes nothing if it runs again. In a cluster, each host is migrated separately and
 * has its own record. So a host that is new or was away gets the migrations that it lacks.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { hostsOf } from '../addresses.js';
import {
  createWarehouse,
  insertRows,
  type Statement,
  type Warehouse,
  type WarehouseOptions,
} from '../clickhouse/connection.js';
import { isAccessDenied, isMissing } from '../clickhouse/errors.js';
import { type Cluster, localDatabase } from '../clickhouse/hosts.js';

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  /** Hexadecimal SHA-256 of the SQL text, independent of line endings. */
  readonly checksum: string;
}

/** Thrown if the migration files are inconsistent, or if other files created the database. The message says what to do. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

export const MIGRATIONS_DIRECTORY = fileURLToPath(new URL('../../../../clickhouse/migrations/', import.meta.url));

const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/;

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
};

const READ_DATABASE_ID: Statement = {
  name: 'read_database_id',
  query: 'SELECT toString(uuid) AS id FROM system.databases WHERE name = currentDatabase()',
};

const READ_ENGINE: Statement = {
  name: 'read_form',
  query: "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'usage_events'",
};

const historyRow = z.object({ version: z.number(), name: z.string(), checksum: z.string() });
type AppliedMigration = z.output<typeof historyRow>;

/**
 * Creates the database if needed, and runs all missing migrations in order on each host. If the schema is up to date, this only sends a
 * SELECT, so a user without rights to change the schema can call it. Concurrent calls and crashes are safe.
 * @returns the names of the migrations that this call ran, on any host
 * @throws MigrationError if another build created the database, if its layout (single server or cluster) differs from the options, or if
 * the user may not run a missing migration. The database is then unchanged.
 */
export async function migrate(options: WarehouseOptions, directory = MIGRATIONS_DIRECTORY): Promise<string[]> {
  const migrations = await readMigrations(directory);
  const names = new Set<string>();
  // Migrate one host after another, because two replicas must not alter their table concurrently.
  for (const url of hostsOf(options.url)) {
    for (const name of await migrateHost({ ...options, url }, migrations)) names.add(name);
  }
  return [...names].sort();
}

async function migrateHost(options: WarehouseOptions, migrations: readonly Migration[]): Promise<string[]> {
  const { database, cluster } = options;
  // A host of a cluster has two databases: a local one with its own tables and the migration record, and one with Distributed tables.
  const local = createWarehouse({ ...options, database: cluster ? localDatabase(database) : database });
  const distributed = createWarehouse(options);
  try {
    const pending = pendingMigrations(migrations, await readHistory(local), database);
    if (pending.length > 0) await runMigrations({ options, local, distributed }, pending);
    return pending.map(({ name }) => name);
  } finally {
    await Promise.all([local.close(), distributed.close()]);
  }
}

/** On a single server, both connections use the same database. */
interface MigratedHost {
  readonly options: WarehouseOptions;
  readonly local: Warehouse;
  readonly distributed: Warehouse;
}

async function readHistory(warehouse: Warehouse): Promise<AppliedMigration[]> {
  try {
    return await warehouse.read(READ_HISTORY, historyRow);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

async function runMigrations(host: MigratedHost, pending: readonly Migration[]): Promise<void> {
  const { user, database, cluster } = host.options;
  try {
    if (cluster) await createDatabase(host.options, localDatabase(database));
    await createDatabase(host.options, database);
    await checkLayout(host);
    await host.local.run({ name: 'create_schema_migrations', query: CREATE_HISTORY });
    for (const migration of pending) await apply(host, migration);
  } catch (cause) {
    if (!isAccessDenied(cause)) throw cause;
    throw new MigrationError(
      `database ${database} lacks migrations up to ${pending.at(-1)?.name}, and user ${user} may not run them; run ` +
        '"meterline migrate" as a user that may, and start again',
      { cause },
    );
  }
}

/** Prevents a mix of single-server and cluster tables: CREATE … IF NOT EXISTS does nothing if the table exists in the other layout. */
async function checkLayout({ options: { database, cluster }, distributed }: MigratedHost): Promise<void> {
  const [table] = await distributed.read(READ_ENGINE, z.object({ engine: z.string() }));
  if (!table || (table.engine === 'Distributed') === (cluster !== undefined)) return;
  throw new MigrationError(
    cluster
      ? `database ${database} has the tables of a single server; give the cluster another database, and copy its rows ` +
          '(docs/scaling.md), or unset CLICKHOUSE_CLUSTER'
      : `database ${database} leads to the shards of a cluster; set CLICKHOUSE_CLUSTER to the name of the cluster`,
  );
}

/**
 * Returns the migrations that are not applied yet. The applied migrations must equal the first files, byte for byte.
 * @throws MigrationError
 */
export function pendingMigrations(
  migrations: readonly Migration[],
  applied: readonly AppliedMigration[],
  database: string,
): readonly Migration[] {
  const foreign = applied.find(({ version, name, checksum }) => {
    const file = migrations[version - 1];
    return file?.name !== name || file.checksum !== checksum;
  });
  if (foreign) {
    throw new MigrationError(
      `database ${database} was made by another build of Meterline, whose migration ${foreign.name} this one does not have; ` +
        'give this one a database of its own (CLICKHOUSE_DATABASE; npm start: METERLINE_DATA_DIR), or start the build that made it',
    );
  }
  return migrations.filter(({ version }) => !applied.some((past) => past.version === version));
}

/** Reads the unique ID of the database. A new database has another ID, even with the name and address of an old database. */
export async function readDatabaseId(warehouse: Warehouse): Promise<string> {
  const [row] = await warehouse.read(READ_DATABASE_ID, z.object({ id: z.guid() }));
  if (!row) throw new Error('the database that is in use does not exist');
  return row.id;
}

async function createDatabase(options: WarehouseOptions, database: string): Promise<void> {
  const server = createWarehouse({ ...options, database: 'default' });
  try {
    await server.run({ name: 'create_database', query: CREATE_DATABASE, query_params: { database } });
  } finally {
    await server.close();
  }
}

async function apply({ options, local, distributed }: MigratedHost, migration: Migration): Promise<void> {
  const { version, name, sql, checksum } = migration;
  const { database, cluster } = options;
  const statements: FormStatement[] = cluster ? inCluster(sql, database, cluster) : [{ database: 'local', sql }];
  for (const statement of statements) {
    const warehouse = statement.database === 'local' ? local : distributed;
    await warehouse.run({ name: 'run_migration', query: statement.sql });
  }
  await insertRows(local, 'schema_migrations', [{ version, name, checksum }]);
}

export async function readMigrations(directory: string): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(names.map((name, index) => readMigration(directory, name, index + 1)));
}

async function readMigration(directory: string, name: string, expected: number): Promise<Migration> {
  const version = Number(FILE_NAME.exec(name)?.[1]);
  if (version !== expected) {
    throw new MigrationError(`migration ${name} is out of order: expected number ${String(expected).padStart(4, '0')}`);
  }
  const sql = (await readFile(`${directory}/${name}`, 'utf8')).replaceAll('\r\n', '\n');
  return { version, name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
}

/** The tables that are not sharded by `account_id`. `every shard`: each shard has a copy of all rows. `key`: the column to shard by. */
const NOT_BY_ACCOUNT: Readonly<Record<string, 'every shard' | { readonly key: string }>> = {
  rollup_watermarks: 'every shard',
  retention_bounds: 'every shard',
  price_books: 'every shard',
  added_dimensions: 'every shard',
  settled_rejections: { key: 'fingerprint' },
};

const CREATED_TABLE = /^CREATE TABLE IF NOT EXISTS (\w+)/m;
/** Column changes must also run on the Distributed table. */
const COLUMN_CHANGE = /^ALTER TABLE \w+ \w+ COLUMN\s/m;
const ENGINE = /^ENGINE = (\w*MergeTree)(?:\((.*)\))?$/m;

interface FormStatement {
  readonly database: 'local' | 'distributed';
  readonly sql: string;
}

/** Returns the statements that each host of a cluster runs, in order. They can run again without effect, like those of a migration file. */
export function inCluster(sql: string, database: string, cluster: Cluster): FormStatement[] {
  const local: FormStatement = { database: 'local', sql: cluster.insertQuorum === undefined ? sql : replicated(sql) };
  const table = CREATED_TABLE.exec(sql)?.[1];
  if (table !== undefined) return [local, leadingTo(table, sql, database, cluster)];
  return COLUMN_CHANGE.test(sql) ? [local, { database: 'distributed', sql }] : [local];
}

/** Replaces the table engine by its replicated variant. The host's macros identify the replica. */
function replicated(sql: string): string {
  return sql.replace(ENGINE, (_, engine: string, columns?: string) => {
    const place = "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'";
    return `ENGINE = Replicated${engine}(${[place, ...(columns ? [columns] : [])].join(', ')})`;
  });
}

/** Returns a statement that creates a Distributed table with the same name, or a view if every shard has all rows. */
function leadingTo(table: string, sql: string, database: string, { name }: Cluster): FormStatement {
  const rows = NOT_BY_ACCOUNT[table];
  const local = localDatabase(database);
  const source = `${quoted(local)}.${table}`;
  if (rows === 'every shard') {
    return { database: 'distributed', sql: `CREATE VIEW IF NOT EXISTS ${table} AS SELECT * FROM ${source}` };
  }
  if (!rows && !/^\s*account_id\s/m.test(sql)) throw new Error(`table ${table} has no account_id; name its shards`);
  const place = [name, local, table].map(text).join(', ');
  const engine = `Distributed(${place}, ${rows?.key ?? 'cityHash64(account_id)'})`;
  return { database: 'distributed', sql: `CREATE TABLE IF NOT EXISTS ${table} AS ${source} ENGINE = ${engine}` };
}

function quoted(identifier: string): string {
  return `\`${identifier.replace(/[\\`]/g, '\\$&')}\``;
}

function text(value: string): string {
  return `'${value.replace(/[\\']/g, '\\$&')}'`;
}
