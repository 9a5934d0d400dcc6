/**
 * A migration file as the statements of a cluster. The files are written for one server; this is all that differs: replicated
 * engines, and a Distributed table or a view for each table. Source: docs/decisions/0010.
 */
import { type Cluster, localDatabase } from '../clickhouse/hosts.js';

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
export interface FormStatement {
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

/** The same engine with replicas, which are told apart by the host's macros. */
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
