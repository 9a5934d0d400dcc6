/** Connects to ClickHouse. Every statement, insert and migration goes through `read` or `run` of a {@link Warehouse}. */
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { ClickHouseError, type ClickHouseSettings, type TupleParam } from '@clickhouse/client';
import { z } from 'zod';
import { hostsOf } from '../addresses.js';
import { ForeignResponseError, isSettingRejected, LONGEST_RESPONSE, UnusableServerError } from './errors.js';
import { type HostOptions, Hosts, type Send, sendQuery } from './hosts.js';
import { isOlderThan, OLDEST_CLICKHOUSE, SETTINGS } from './settings.js';

export interface WarehouseOptions extends HostOptions {
  readonly observe?: StatementObserver;
}

/** Called when a statement starts. The returned function is called when the statement ends. Neither function may throw. */
export type StatementObserver = (name: string) => StatementEnd;
/** A metrics label. `refused`: the server responded with an error. `unanswered`: the response is missing, late or incomplete. */
export type StatementOutcome = 'ok' | 'refused' | 'unanswered' | 'cancelled';
type StatementEnd = (outcome: StatementOutcome, error?: unknown) => void;

export type Parameter = string | number | bigint | TupleParam | readonly Parameter[];

export type StatementParameters = Readonly<Record<string, Parameter>>;

export interface Statement {
  /** Appears in metrics, dashboards and traces, so it must not change. */
  readonly name: string;
  /** SQL text. Values are passed as parameters; only identifiers that the code defines, such as column names, are part of the text. */
  readonly query: string;
  readonly query_params?: StatementParameters;
  readonly settings?: ClickHouseSettings;
}

export interface Scope {
  /** Abort this signal when the results are no longer needed. The server then stops working on the statements. */
  readonly signal?: AbortSignal;
  /** Default settings. A statement's own settings override them. */
  readonly settings?: ClickHouseSettings;
}

/** Settings for background statements. A server without the Linux capability CAP_SYS_NICE ignores the priority, but still uses one thread. */
export const LOW_PRIORITY = { max_threads: 1, os_thread_priority: '10' } as const satisfies ClickHouseSettings;

export interface Warehouse {
  /**
   * Runs a SELECT and validates each row against the schema. If the connection is lost before the response is complete, the statement is
   * sent once more, because the usual cause is that the server has just closed an idle connection.
   * @throws ClickHouseError if the server rejects the statement; an error with a `code` if no complete response arrives; ForeignResponseError if
   * the response does not come from ClickHouse; ZodError if a row does not match its schema
   */
  read<Row extends z.ZodType>(statement: Statement, row: Row): Promise<z.output<Row>[]>;
  /**
   * Runs a statement that returns no rows. Its writes are durable when the promise resolves. If the promise rejects with anything but a
   * ClickHouseError, the outcome is unknown: the statement may have run, may not have run, or may still be running.
   * @param rows the rows of an insert, in the format that the statement names. An insert is sent once more if the connection is lost,
   * because inserting the same rows twice changes nothing. Other statements are sent only once: a migration or mutation that may still be
   * running must not start a second time without its caller's knowledge.
   * @returns the number of written rows that ClickHouse reports in a header, including rows of materialized views; undefined if a proxy
   * removed this header
   * @throws the same errors as {@link read}
   */
  run(statement: Statement, rows?: string | Buffer): Promise<number | undefined>;
  /** Returns a connection with these settings and this signal. After an abort, its statements reject once the server has ended them. */
  within(scope: Scope): Warehouse;
  ping(): Promise<boolean>;
  /** Closes the connection immediately, so running statements fail. A shutdown must not wait for a server that hangs. */
  close(): Promise<void>;
}

/** The pool connects at the first statement, so this function does not fail if the server is unreachable. */
export function createWarehouse(options: WarehouseOptions): Warehouse {
  return connection(new Hosts(options), options.observe, {});
}

/** Matches INSERT … SELECT. `sendQuery` can send its long parameters. ClickHouse ignores the FORMAT clause that `sendQuery` appends. */
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
          throw new ForeignResponseError(`${statement.name} returned: ${response.slice(0, LONGEST_RESPONSE)}`);
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

function parsed(response: string): unknown {
  try {
    return JSON.parse(response);
  } catch (cause) {
    throw new ForeignResponseError('the response is not JSON', { cause });
  }
}

const summary = z.object({ written_rows: z.coerce.number() });

/** Reads the row count from the summary header of a complete response. Source: ClickHouse documentation, "HTTP interface". */
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
 * Checks that the server is a ClickHouse server that Meterline can use. The server must accept the password, know Meterline's settings and
 * let the user change them (see settings.ts). The check also reads the result, because some other servers respond with status 200 to every
 * request and would silently lose inserted rows.
 * @throws UnusableServerError, or another error that prevents using the server
 */
export async function checkConnection(warehouse: Warehouse): Promise<void> {
  const [found] = await warehouse.read(CHECK, checkRow).catch((error: unknown) => {
    if (error instanceof z.ZodError) throw new ForeignResponseError('the response has no version', { cause: error });
    if (!isSettingRejected(error)) throw error;
    throw new UnusableServerError(`${error.message.replace(/\.?\s*$/, '')}; ${FIT}`, { cause: error });
  });
  if (!found) throw new ForeignResponseError('the response has no version');
  if (isOlderThan(found.version, OLDEST_CLICKHOUSE))
    throw new UnusableServerError(`its version is ${found.version}; ${FIT}`);
  const settings = new Map(found.settings);
  for (const [name, value] of Object.entries(SETTINGS)) {
    const inForce = settings.get(name);
    if (inForce !== undefined && inForce !== String(value)) {
      throw new UnusableServerError(`${name} stays "${inForce}" although Meterline sets "${value}"; ${FIT}`);
    }
  }
}

export async function readProcessors(warehouse: Warehouse): Promise<number> {
  const statement = { name: 'read_processors', query: "SELECT getSetting('max_threads') AS processors" };
  const [row] = await warehouse.read(statement, z.object({ processors: z.coerce.number() }));
  return row?.processors ?? 1;
}

/**
 * Checks every server in `options.url`. An unreachable server affects only its own accounts, so one usable server is enough.
 * @throws the errors of {@link checkConnection} if no server can be used, or UnusableServerError if any server is unfit
 */
export async function checkServers(options: WarehouseOptions): Promise<void> {
  const urls = hostsOf(options.url);
  const outcomes = await Promise.allSettled(
    urls.map(async (url) => {
      // Connect to `default`, which always exists. Meterline's own database may not exist yet.
      const server = createWarehouse({ ...options, url, database: 'default' });
      await checkConnection(server).finally(() => server.close());
    }),
  );
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  const unfit = failures.find((error) => error instanceof UnusableServerError);
  if (unfit !== undefined || failures.length === urls.length) throw unfit ?? failures[0];
}

const FIT =
  `Meterline needs ClickHouse ${OLDEST_CLICKHOUSE} or newer, and a user without readonly and without constraints on the settings ` +
  'of docs/operations.md, "ClickHouse settings"';

/** @throws the error of the first shard in the list whose work failed, but only after the work on every shard has ended */
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

/** Sends encoded rows, which are durable when the promise resolves. After a rejection, they may or may not be stored; a retry is safe. */
export type PreparedInsert = (warehouse: Warehouse) => Promise<void>;

/** DateTime columns are in seconds, DateTime64(3) columns in milliseconds. */
type JsonRow = Readonly<Record<string, string | number | readonly number[]>>;

/** @throws ForeignResponseError if ClickHouse reports that it wrote fewer than `count` rows. The insert may then be retried. */
export async function insert(
  warehouse: Warehouse,
  statement: Statement,
  rows: string | Buffer,
  count: number,
): Promise<void> {
  const written = await warehouse.run(statement, rows);
  if (written !== undefined && written < count)
    throw new ForeignResponseError(`${statement.name} wrote ${written} rows of ${count}`);
}

/** Encodes rows as JSON, for tables that are rarely written. Events use a faster format. All rows must have the columns of the first row. */
export function prepareRows(table: string, rows: readonly JsonRow[], name = `insert_${table}`): PreparedInsert {
  const [first] = rows;
  if (!first) return async () => undefined;
  // ClickHouse's parallel parser rejects long rows.
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

/** Replaces unpaired UTF-16 surrogates in strings, because the server rejects their JSON escapes. */
function wellFormed(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? Buffer.from(value).toString() : value;
}
