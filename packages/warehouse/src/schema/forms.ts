/**
 * A migration file as the statements of a cluster. The files are written for one server; this is all that differs: replicated
 * engines, and a Distributed table for each table. Source: docs/decisions/0035.
 */
import { type Cluster, localDatabase } from '../cluster/cluster.js';

/**
 * Where the rows go of tables that are not by account. A table that is not named here is sharded by `account_id`, and must have
 * it. `each shard`: the rows are about the shard that they lie in, and are read with its number, a column `shard`.
 * `every shard`: each has all rows, which are written to each of them. `no longer`: it is renamed or
 * dropped before anybody reads it.
 */
const NOT_BY_ACCOUNT: Readonly<Record<string, 'each shard' | 'every shard' | 'no longer' | { readonly key: string }>> =
  {
    rollup_seals: 'each shard',
    retention_bounds: 'each shard',
    price_books: 'every shard',
    usage_events_next: 'no longer',
    settled_rejections: { key: 'fingerprint' },
    rejected_payloads: { key: 'cityHash64(job_id)' },
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
  if (table !== undefined) return [local, ...leadingTo(table, sql, database, cluster)];
  return COLUMN_CHANGE.test(sql) ? [local, { database: 'distributed', sql }] : [local];
}

/** The same engine with replicas, which are told apart by the host's macros. */
function replicated(sql: string): string {
  return sql.replace(ENGINE, (_, engine: string, columns?: string) => {
    const place = "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'";
    return `ENGINE = Replicated${engine}(${[place, ...(columns ? [columns] : [])].join(', ')})`;
  });
}

/** A table of the same name that leads to all shards. */
function leadingTo(table: string, sql: string, database: string, { name }: Cluster): FormStatement[] {
  const rows = NOT_BY_ACCOUNT[table];
  const create = (source: string, key?: string): FormStatement => {
    const place = [name, localDatabase(database), source].map(text);
    const engine = `Distributed(${[...place, ...(key === undefined ? [] : [key])].join(', ')})`;
    const structure = `${quoted(localDatabase(database))}.${source}`;
    return {
      database: 'distributed',
      sql: `CREATE TABLE IF NOT EXISTS ${table} AS ${structure} ENGINE = ${engine}`,
    };
  };
  if (rows === 'no longer') return [];
  if (rows === 'each shard') {
    const view = `${table}_by_shard`;
    const select = `SELECT shardNum() AS shard, * FROM ${table}`;
    return [
      { database: 'local', sql: `CREATE VIEW IF NOT EXISTS ${view} AS ${select}` },
      // Shards have numbers from 1 on, and the remainders of a key begin at 0.
      create(view, 'shard - 1'),
    ];
  }
  // Without a key nothing can be inserted through it.
  if (rows === 'every shard') return [create(table)];
  if (!rows && !/^\s*account_id\s/m.test(sql)) throw new Error(`table ${table} has no account_id; name its shards`);
  return [create(table, rows?.key ?? 'cityHash64(account_id)')];
}

function quoted(identifier: string): string {
  return `\`${identifier.replace(/[\\`]/g, '\\$&')}\``;
}

function text(value: string): string {
  return `'${value.replace(/[\\']/g, '\\$&')}'`;
}
