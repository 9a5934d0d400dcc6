/**
 * The one way to ClickHouse: every statement, insert and migration goes through `read` or `run` of a {@link Warehouse},
 * and from there through `@clickhouse/client`.
 */
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { ClickHouseError, type ClickHouseSettings, type TupleParam } from '@clickhouse/client';
import { z } from 'zod';
import { hostsOf } from '../addresses.js';
import { ForeignResponse, isSettingRefused, LONGEST_RESPONSE, UnfitServer } from './errors.js';
import { type HostOptions, Hosts, type Send, sendQuery } from './hosts.js';
import { isOlderThan, OLDEST_CLICKHOUSE, SETTINGS } from './settings.js';

export interface WarehouseOptions extends HostOptions {
  /** Called for every statement. */
  readonly observe?: StatementObserver;
}

/** Called when a statement begins, with a name that never changes. Must not throw. */
export type StatementObserver = (name: string) => StatementEnd;
/**
 * `refused`: the server responded with an error. `unanswered`: no response came, or not in time, or not to its end.
 * `cancelled`: nobody waited for the result any more.
 */
export type StatementOutcome = 'ok' | 'refused' | 'unanswered' | 'cancelled';
/** Called once, when the statement has ended. */
type StatementEnd = (outcome: StatementOutcome, error?: unknown) => void;

/** The value of a parameter of a statement. Members of a tuple may be of different types, those of an array may not. */
export type Parameter = string | number | bigint | TupleParam | readonly Parameter[];

/** Values of `{name: Type}` in a statement's text. */
export type StatementParameters = Readonly<Record<string, Parameter>>;

export interface Statement {
  /** Stable: metrics, dashboards and traces name the statement by it. */
  readonly name: string;
  /** Only identifiers of the catalog are ever part of it. */
  readonly query: string;
  readonly query_params?: StatementParameters;
  /** For this statement alone. */
  readonly settings?: ClickHouseSettings;
}

/** What statements that belong together have in common. */
export interface Scope {
  /** Aborted: their results are not wanted any more, and the server stops working on them. */
  readonly signal?: AbortSignal;
  /** For each of them, unless it has its own. */
  readonly settings?: ClickHouseSettings;
}

/**
 * For statements that others should not wait for. The niceness needs CAP_SYS_NICE in the server; without it the server ignores it, and
 * one thread must do.
 */
export const LOW_PRIORITY = { max_threads: 1, os_thread_priority: '10' } as const satisfies ClickHouseSettings;

/** A connection to Meterline's database; every function of this package takes one as its first argument. */
export interface Warehouse {
  /**
   * Runs a SELECT and checks every row against its schema. When the connection is lost before the response is complete,
   * the statement is sent once more: most often the server closed it, idle, just as the statement left.
   * @throws ClickHouseError when the server refuses; an error with a `code` when no complete response comes; a ForeignResponse
   * when what responds is not ClickHouse; a ZodError when a row is not as it should be
   */
  read<Row extends z.ZodType>(statement: Statement, row: Row): Promise<z.output<Row>[]>;
  /**
   * Runs a statement without a result. What it has written is durable when the promise resolves. When it rejects
   * with anything but a ClickHouseError, the statement may or may not have run, or may still be running.
   * @param rows rows of an insert, in the format that the statement names. Such a statement is sent once more when the
   * connection is lost: inserting the same rows twice changes nothing. Any other is sent only once, because a migration
   * or a mutation that may be running must not be started a second time without its caller's knowledge.
   * @returns how many rows ClickHouse reports as written, those of materialized views included; undefined when a proxy has removed the header
   * @throws as {@link read}
   */
  run(statement: Statement, rows?: string | Buffer): Promise<number | undefined>;
  /**
   * This connection for statements of one scope. When its signal is aborted they fail with the signal's reason, but not
   * before the server has ended them: until then they are under way.
   */
  within(scope: Scope): Warehouse;
  /** Whether a server responds at all. It runs no statement. */
  ping(): Promise<boolean>;
  /** Closes at once: statements under way fail. A stop must not wait for a server that hangs. */
  close(): Promise<void>;
}

/** Opens keep-alive connections. They connect at the first statement, so this never fails by itself. */
export function createWarehouse(options: WarehouseOptions): Warehouse {
  return connection(new Hosts(options), options.observe, {});
}

/** The kind of statement without a result that may have long lists as parameters; a FORMAT means nothing to it. */
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

/** @param header of a complete response. Source: ClickHouse documentation, "HTTP interface" */
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
 * Runs a statement, so that a wrong password fails too, and looks at its result: many servers answer 200 to everything, and
 * would swallow rows as well. The server must know our settings, and let the user set them: see settings.ts.
 * @throws UnfitServer, or another reason why the server cannot be used
 */
export async function checkConnection(warehouse: Warehouse): Promise<void> {
  const [found] = await warehouse.read(CHECK, checkRow).catch((error: unknown) => {
    if (error instanceof z.ZodError) throw new ForeignResponse('the response has no version', { cause: error });
    if (!isSettingRefused(error)) throw error;
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

/** How many processors a statement may use. */
export async function readProcessors(warehouse: Warehouse): Promise<number> {
  const statement = { name: 'read_processors', query: "SELECT getSetting('max_threads') AS processors" };
  const [row] = await warehouse.read(statement, z.object({ processors: z.coerce.number() }));
  return row?.processors ?? 1;
}

/**
 * Checks each of the servers that the addresses name.
 * @throws as {@link checkConnection} if none can be used, or one of them is unfit; those that are away concern their accounts alone
 */
export async function checkServers(options: WarehouseOptions): Promise<void> {
  const urls = hostsOf(options.url);
  const outcomes = await Promise.allSettled(
    urls.map(async (url) => {
      // Our own database may not be there yet; `default` always is.
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

/**
 * Works on all shards at the same time.
 * @throws what the work on one of them has failed with, when all have ended
 */
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
 * An insert whose rows are encoded, so that it can be repeated without encoding them again. When its promise resolves the rows
 * are durable; when it rejects they may or may not be, and the same rows may be inserted again.
 */
export type PreparedInsert = (warehouse: Warehouse) => Promise<void>;

/** A DateTime is a number of seconds, a DateTime64(3) one of milliseconds. */
type JsonRow = Readonly<Record<string, string | number | readonly number[]>>;

/**
 * @param count how many rows these are
 * @throws ForeignResponse when ClickHouse reports fewer as written: they may be sent again
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

/** One insert of rows as JSON, all with the columns of the first: for tables that are seldom written. Events have a faster format. */
export function prepareRows(table: string, rows: readonly JsonRow[], name = `insert_${table}`): PreparedInsert {
  const [first] = rows;
  if (!first) return async () => undefined;
  // The parallel parser refuses long rows.
  const settings = { input_format_parallel_parsing: 0 } as const;
  const statement = {
    name,
    query: `INSERT INTO ${table} (${Object.keys(first).join(', ')}) FORMAT JSONEachRow`,
    settings,
  };
  const body = rows.map((row) => JSON.stringify(row, wellFormed)).join('\n');
  return (warehouse) => insert(warehouse, statement, body, rows.length);
}

/** See {@link prepareRows}. */
export function insertRows(...[warehouse, ...rows]: [Warehouse, ...Parameters<typeof prepareRows>]): Promise<void> {
  return prepareRows(...rows)(warehouse);
}

/** The server refuses the escape of half a surrogate pair. */
function wellFormed(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? Buffer.from(value).toString() : value;
}
