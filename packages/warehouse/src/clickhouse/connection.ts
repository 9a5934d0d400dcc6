/**
 * Connects to ClickHouse. Every statement, insert and migration goes through `read` or `run` of a {@link Warehouse}, which uses
 * `@clickhouse/client`.
 */
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { ClickHouseError, type ClickHouseSettings, type TupleParam } from '@clickhouse/client';
import { z } from 'zod';
import { hostsOf } from '../addresses.js';
import { ForeignResponse, isSettingRejected, LONGEST_RESPONSE, UnfitServer } from './errors.js';
import { type HostOptions, Hosts, type Send, sendQuery } from './hosts.js';
import { isOlderThan, OLDEST_CLICKHOUSE, SETTINGS } from './settings.js';

export interface WarehouseOptions extends HostOptions {
  readonly observe?: StatementObserver;
}

/** Called when a statement starts, with the stable name of the statement. Must not throw. */
export type StatementObserver = (name: string) => StatementEnd;
/**
 * The result of a statement, a label of metrics. In order: success; the server responded with an error; the response is missing, late or
 * incomplete; the caller no longer needs the result.
 */
export type StatementOutcome = 'ok' | 'refused' | 'unanswered' | 'cancelled';
type StatementEnd = (outcome: StatementOutcome, error?: unknown) => void;

/** The value of a statement's parameter. Elements of an array have one type, those of a tuple may have several. */
export type Parameter = string | number | bigint | TupleParam | readonly Parameter[];

/** Values of the `{name: Type}` placeholders in a query. */
export type StatementParameters = Readonly<Record<string, Parameter>>;

export interface Statement {
  /** A stable name, used in metrics, dashboards and traces. */
  readonly name: string;
  /** SQL. Values are always parameters; only identifiers of the catalog are interpolated. */
  readonly query: string;
  readonly query_params?: StatementParameters;
  readonly settings?: ClickHouseSettings;
}

/** Options shared by a group of statements. */
export interface Scope {
  /** Aborted when the caller no longer needs the results. The server then stops working on the statements. */
  readonly signal?: AbortSignal;
  /** Defaults, which settings of a single statement override. */
  readonly settings?: ClickHouseSettings;
}

/**
 * For background statements, which must not slow down others. The thread priority needs CAP_SYS_NICE in the server; without it the server
 * ignores the priority, and only the limit to one thread applies.
 */
export const LOW_PRIORITY = { max_threads: 1, os_thread_priority: '10' } as const satisfies ClickHouseSettings;

/** A connection to Meterline's database. Every function of this package takes one as its first argument. */
export interface Warehouse {
  /**
   * Runs a SELECT and validates each row against the schema. If the connection is lost before the response is complete, the statement is
   * sent once more: usually the server had just closed an idle connection.
   * @throws ClickHouseError if the server rejects the statement; an error with a `code` if no complete response arrives; ForeignResponse if
   * the response does not come from ClickHouse; ZodError if a row does not match its schema
   */
  read<Row extends z.ZodType>(statement: Statement, row: Row): Promise<z.output<Row>[]>;
  /**
   * Runs a statement without a result. Its writes are durable when the promise resolves. If it rejects with anything but a ClickHouseError,
   * the statement may or may not have run, or may still be running.
   * @param rows rows of an insert, in the format that the statement names. An insert is sent once more if the connection is lost, because
   * inserting the same rows twice changes nothing. Other statements are sent once: a migration or mutation that may still be running must
   * not start a second time without its caller's knowledge.
   * @returns the number of rows that ClickHouse reports as written, including those of materialized views; undefined if a proxy removed the
   * header
   * @throws as {@link read}
   */
  run(statement: Statement, rows?: string | Buffer): Promise<number | undefined>;
  /**
   * Returns this connection for the statements of a scope. When the signal is aborted, its statements reject with the signal's reason, but
   * only after the server has ended them.
   */
  within(scope: Scope): Warehouse;
  /** Whether a server responds. Runs no statement. */
  ping(): Promise<boolean>;
  /** Closes immediately, and running statements fail: a shutdown must not wait for a server that hangs. */
  close(): Promise<void>;
}

/** Creates a connection pool. It connects at the first statement, so this function never fails by itself. */
export function createWarehouse(options: WarehouseOptions): Warehouse {
  return connection(new Hosts(options), options.observe, {});
}

/** INSERT … SELECT: it may have long parameters, which only `sendQuery` can send, and ignores the FORMAT that `sendQuery` appends. */
const INSERT_SELECT = /^\s*INSERT\s.*\sSELECT\s/s;

function connection(hosts: Hosts, observe: StatementObserver | undefined, scope: Scope): Warehouse {
  const { signal } = scope;
  const send = (statement: Statement, isRepeatable: boolean, how: Send) => {
    const { query, query_params = {}, settings } = statement;
    const params = { query, query_params, clickhouse_settings: { ...scope.settings, ...settings } };
    return hosts.send(params, { isRepeatable, signal }, how);
  };
  const observed = async <T>({ name }: Statement, work: () => Promise<T>): Promise<T> => {
    signal?.throwIfAborted();
    const end = observe?.(name);
    try {
      const result = await work();
      end?.('ok');
      return result;
    } catch (error) {
      if (signal?.aborted) end?.('cancelled', error);
      else end?.(error instanceof ClickHouseError ? 'refused' : 'unanswered', error);
      throw error;
    }
  };
  return {
    read: async (statement, row) => {
      const rows = await observed(statement, async () => parsed((await send(statement, true, sendQuery)).text));
      return z.array(row).parse(rows);
    },
    run: (statement, rows) => {
      const exec: Send = async (client, params) => {
        const values = rows === undefined ? {} : { values: Readable.from([rows]) };
        const { stream, response_headers } = await client.exec({ ...params, ...values });
        return { text: await text(stream), headers: response_headers };
      };
      const how = rows === undefined && INSERT_SELECT.test(statement.query) ? sendQuery : exec;
      return observed(statement, async () => {
        const { text: response, headers } = await send(statement, rows !== undefined, how);
        if (response !== '')
          throw new ForeignResponse(`${statement.name} returned: ${response.slice(0, LONGEST_RESPONSE)}`);
        return writtenRows(headers['x-clickhouse-summary']);
      });
    },
    within: (inner) => {
      const settings = { ...scope.settings, ...inner.settings };
      return connection(hosts, observe, { ...scope, ...inner, settings });
    },
    ping: () => hosts.ping(),
    close: () => hosts.close(),
  };
}

/** @throws ForeignResponse */
function parsed(response: string): unknown {
  try {
    return JSON.parse(response);
  } catch (cause) {
    throw new ForeignResponse('the response is not JSON', { cause });
  }
}

const summary = z.object({ written_rows: z.coerce.number() });

/** @param header from a complete response. Source: ClickHouse documentation, "HTTP interface" */
function writtenRows(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' ? summary.parse(parsed(header)).written_rows : undefined;
}

const CHECK: Statement = {
  name: 'check_connection',
  query:
    'SELECT version() AS version, groupArray([name, value]) AS settings FROM system.settings WHERE name IN {names: Array(String)}',
  query_params: { names: Object.keys(SETTINGS) },
};
const checkRow = z.object({ version: z.string(), settings: z.array(z.tuple([z.string(), z.string()])) });

/**
 * Checks that the server is a ClickHouse that Meterline can use: it must accept the password, know our settings and let the user set them
 * (see settings.ts). The result is checked too, because other servers may respond 200 to everything, and would swallow rows as well.
 * @throws UnfitServer, or another error that prevents using the server
 */
export async function checkConnection(warehouse: Warehouse): Promise<void> {
  const [found] = await warehouse.read(CHECK, checkRow).catch((error: unknown) => {
    if (error instanceof z.ZodError) throw new ForeignResponse('the response has no version', { cause: error });
    if (!isSettingRejected(error)) throw error;
    throw new UnfitServer(`${error.message.replace(/\.?\s*$/, '')}; ${FIT}`, { cause: error });
  });
  if (!found) throw new ForeignResponse('the response has no version');
  if (isOlderThan(found.version, OLDEST_CLICKHOUSE)) throw new UnfitServer(`its version is ${found.version}; ${FIT}`);
  const settings = new Map(found.settings);
  for (const [name, value] of Object.entries(SETTINGS)) {
    const inForce = settings.get(name);
    if (inForce !== undefined && inForce !== String(value)) {
      throw new UnfitServer(`${name} stays "${inForce}" although Meterline sets "${value}"; ${FIT}`);
    }
  }
}

export async function readProcessors(warehouse: Warehouse): Promise<number> {
  const statement = { name: 'read_processors', query: "SELECT getSetting('max_threads') AS processors" };
  const [row] = await warehouse.read(statement, z.object({ processors: z.coerce.number() }));
  return row?.processors ?? 1;
}

/**
 * Checks every server in `options.url`.
 * @throws as {@link checkConnection} if no server can be used, or if one is unfit. Unreachable servers are tolerated: they affect only
 * their own accounts.
 */
export async function checkServers(options: WarehouseOptions): Promise<void> {
  const urls = hostsOf(options.url);
  const outcomes = await Promise.allSettled(
    urls.map(async (url) => {
      // Our own database may not exist yet; `default` always does.
      const server = createWarehouse({ ...options, url, database: 'default' });
      await checkConnection(server).finally(() => server.close());
    }),
  );
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  const unfit = failures.find((error) => error instanceof UnfitServer);
  if (unfit !== undefined || failures.length === urls.length) throw unfit ?? failures[0];
}

const FIT =
  `Meterline needs ClickHouse ${OLDEST_CLICKHOUSE} or newer, and a user without readonly and without constraints on the settings ` +
  'of docs/operations.md, "ClickHouse settings"';

/** Runs the work on all shards concurrently. @throws the first error, after the work on every shard has ended */
export async function onEachShard<Shard, T>(
  shards: readonly Shard[],
  work: (shard: Shard) => Promise<T>,
): Promise<T[]> {
  const outcomes = await Promise.allSettled(shards.map(work));
  return outcomes.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
}

/**
 * An insert with encoded rows, so that retries need not encode them again. The rows are durable when the promise resolves. When it rejects,
 * they may or may not be, and the same rows may be inserted again.
 */
export type PreparedInsert = (warehouse: Warehouse) => Promise<void>;

/** A DateTime is in seconds, a DateTime64(3) in milliseconds. */
type JsonRow = Readonly<Record<string, string | number | readonly number[]>>;

/**
 * @param count number of rows
 * @throws ForeignResponse if ClickHouse reports fewer rows as written; the insert may then be retried
 */
export async function insert(
  warehouse: Warehouse,
  statement: Statement,
  rows: string | Buffer,
  count: number,
): Promise<void> {
  const written = await warehouse.run(statement, rows);
  if (written !== undefined && written < count)
    throw new ForeignResponse(`${statement.name} wrote ${written} rows of ${count}`);
}

/**
 * Prepares one insert of JSON rows, which all have the columns of the first row. For tables that are rarely written; events use a faster
 * format.
 */
export function prepareRows(table: string, rows: readonly JsonRow[], name = `insert_${table}`): PreparedInsert {
  const [first] = rows;
  if (!first) return async () => undefined;
  // The parallel parser rejects long rows.
  const settings = { input_format_parallel_parsing: 0 } as const;
  const statement = {
    name,
    query: `INSERT INTO ${table} (${Object.keys(first).join(', ')}) FORMAT JSONEachRow`,
    settings,
  };
  const body = rows.map((row) => JSON.stringify(row, wellFormed)).join('\n');
  return (warehouse) => insert(warehouse, statement, body, rows.length);
}

export function insertRows(
  warehouse: Warehouse,
  table: string,
  rows: readonly JsonRow[],
  name?: string,
): Promise<void> {
  return prepareRows(table, rows, name)(warehouse);
}

/** Replaces unpaired surrogates, whose escapes the server rejects. */
function wellFormed(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? Buffer.from(value).toString() : value;
}
