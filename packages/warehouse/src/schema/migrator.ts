/**
 * Brings a database to the schema of the migration files, however many processes start at once. A file is named
 * `NNNN_name.sql`, and the numbers run from 0001 without a gap. It holds one statement that changes nothing the second time:
 * ClickHouse has no lock to take, so processes that start at once run the same files, and a crash may fall between a statement and its
 * record. In a cluster each host is brought there by itself and has its own record of what it has run, so a host that was away or is
 * new gets what it lacks.
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
  /** The file's name. */
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the text, hexadecimal; line endings do not count. */
  readonly checksum: string;
}

/** The migration files cannot be trusted, or the database is not one that they have made; the message says what to do. */
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
 * Creates the database if there is none and runs every migration that it lacks, in order, on each host. A user without rights to
 * the schema can call it too: nothing but a SELECT is sent when the schema is up to date.
 * Safe when several processes do so at once and when one dies in between.
 * @returns the names of the migrations that this call has run, on any host
 * @throws MigrationError when another build has made the database, it has another form than the options say, or a migration has
 * to run and the user may not; the database is left as it is
 */
export async function migrate(options: WarehouseOptions, directory = MIGRATIONS_DIRECTORY): Promise<string[]> {
  const migrations = await readMigrations(directory);
  const names = new Set<string>();
  // One host after the other: two replicas must not alter their table at the same time.
  for (const url of hostsOf(options.url)) {
    for (const name of await migrateHost({ ...options, url }, migrations)) names.add(name);
  }
  return [...names].sort();
}

async function migrateHost(options: WarehouseOptions, migrations: readonly Migration[]): Promise<string[]> {
  const { database, cluster } = options;
  // A host of a cluster has a database of its tables, with the record of what has run, and one of tables that lead to all shards.
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

/** A single server, whose two databases are one, or a host of a cluster. */
interface MigratedHost {
  readonly options: WarehouseOptions;
  readonly local: Warehouse;
  readonly distributed: Warehouse;
}

/** Empty for a database that does not exist. */
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
    await requireForm(host);
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

/** Statements that change nothing where something else has their tables' names would leave a database of two forms. */
async function requireForm({ options: { database, cluster }, distributed }: MigratedHost): Promise<void> {
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
 * The migrations still to run. Those that have run must be the first of the files, letter by letter.
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

/** Differs for every database, also for a new one with the name and address of an old one. */
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

/**
 * Where the rows go of tables that are not by account. A table that is not named here is sharded by `account_id`, and must have
 * it. `every shard`: each has all rows, which are written to each of them, and read from whichever is asked.
 */
const NOT_BY_ACCOUNT: Readonly<Record<string, 'every shard' | { readonly key: string }>> = {
  rollup_watermarks: 'every shard',
  retention_bounds: 'every shard',
  price_books: 'every shard',
  settled_rejections: { key: 'fingerprint' },
};

const CREATED_TABLE = /^CREATE TABLE IF NOT EXISTS (\w+)/m;
/** Adds, changes or removes a column, which the Distributed table must follow. */
const COLUMN_CHANGE = /^ALTER TABLE \w+ \w+ COLUMN\s/m;
const ENGINE = /^ENGINE = (\w*MergeTree)(?:\((.*)\))?$/m;

/** A statement of a shard's own database, or of the one that leads to all shards. */
interface FormStatement {
  readonly database: 'local' | 'distributed';
  readonly sql: string;
}

/** The statements of a migration on each host of a cluster, in order; like the file, they change nothing when they run twice. */
export function inCluster(sql: string, database: string, cluster: Cluster): FormStatement[] {
  const local: FormStatement = { database: 'local', sql: cluster.insertQuorum === undefined ? sql : replicated(sql) };
  const table = CREATED_TABLE.exec(sql)?.[1];
  if (table !== undefined) return [local, leadingTo(table, sql, database, cluster)];
  return COLUMN_CHANGE.test(sql) ? [local, { database: 'distributed', sql }] : [local];
}

/** The statement with the engine's form for replicas, which are told apart by the host's macros. */
function replicated(sql: string): string {
  return sql.replace(ENGINE, (_, engine: string, columns?: string) => {
    const place = "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'";
    return `ENGINE = Replicated${engine}(${[place, ...(columns ? [columns] : [])].join(', ')})`;
  });
}

/** A table of the same name that leads to all shards, or a view of the copy of the host that is asked. */
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
