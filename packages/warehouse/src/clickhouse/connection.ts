/**
 * The one way to ClickHouse. Every statement, insert and migration goes through `read` or `run` of a {@link Warehouse},
 * so this file alone observes, retries, times out and escapes. Why it is undici's pool and not the official client:
 * docs/decisions/0010.
 */
import { ClickHouseError, type ClickHouseSettings, parseError } from '@clickhouse/client';
import { FormData, Pool } from 'undici';
import { z } from 'zod';
import { exceptionIn, failureOf, isLostConnection } from './errors.js';
import { formatParameter, type Parameter } from './parameters.js';

export interface WarehouseOptions {
  /** See {@link clickHouseUrlFault}. */
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** How long the server may be silent before a statement counts as failed. */
  readonly requestTimeoutMs?: number;
  /** Statements beyond so many at once wait for one of these connections. */
  readonly maxConnections?: number;
  /** Shown in ClickHouse's logs and in system.query_log. */
  readonly application: string;
  /** Called for every statement. */
  readonly observe?: StatementObserver;
}

/** Called when a statement begins, with a name that never changes. Must not throw. */
export type StatementObserver = (name: string) => StatementEnd;
/** `refused`: the server answered with an error. `unanswered`: no answer came, or not in time, or not to its end. */
export type StatementOutcome = 'ok' | 'refused' | 'unanswered';
/** Called once, when the statement has ended. */
export type StatementEnd = (outcome: StatementOutcome, error?: unknown) => void;

/** Part of a statement, with its parameters; only identifiers of the catalog are ever part of the text. */
export interface Relation {
  readonly query: string;
  /** Values of `{name: Type}` in the text. */
  readonly query_params: Readonly<Record<string, Parameter>>;
}

export interface Statement extends Relation {
  /** Stable: metrics, dashboards and traces name the statement by it. */
  readonly name: string;
  /** For this statement alone. */
  readonly settings?: ClickHouseSettings;
}

/** A connection to Meterline's database; every function of this package takes one as its first argument. */
export interface Warehouse {
  /**
   * Runs a SELECT and checks every row against its schema. A connection that is lost before the answer is complete gets
   * the statement sent once more: most often the server closed it, idle, just as the statement left.
   * @throws ClickHouseError when the server refuses, also after it has begun to answer; an error with a `code` when no
   * complete answer comes; a SyntaxError when what answers is not ClickHouse; a ZodError when a row is not as it should be
   */
  read<Row extends z.ZodType>(statement: Statement, row: Row): Promise<z.output<Row>[]>;
  /**
   * Runs a statement that answers with nothing. What it has written is durable when the promise resolves. When it rejects
   * with anything but a ClickHouseError, the statement may or may not have run, or may still be running.
   * @param body the rows of an insert, in the format that the statement names. Such a statement is sent once more when the
   * connection is lost: inserting the same rows twice changes nothing. Any other is sent only once, because a migration
   * or a mutation that may be running must not be started a second time without its caller's knowledge.
   * @throws as {@link read}
   */
  run(statement: Statement, body?: string | Buffer): Promise<void>;
  /** Whether a server answers at all. It runs no statement, and never waits for one: it has a connection of its own. */
  ping(): Promise<boolean>;
  /** Closes at once: statements under way fail. A stop must not wait for a server that hangs. */
  close(): Promise<void>;
}

/** Opens a pool of keep-alive connections. They connect at the first statement, so this never fails by itself. */
export function createWarehouse(options: WarehouseOptions): Warehouse {
  return new Connection(options);
}

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 10;
const OK = 200;
/**
 * Parameters that take more characters of the URL than this are sent as fields of a form. Servers and proxies limit a
 * URL, many of them to 8 or 16 kB. A field may have 128 KB, the statement included (http_max_field_value_size).
 */
const MAX_URL_PARAMETERS = 4096;

const SETTINGS = {
  // Acknowledged must mean durable: a row handed to the server's buffer would be lost with it.
  async_insert: 0,
  // The same rows may be sent again on purpose (a retry, a replay after an erase); keys alone decide.
  insert_deduplicate: 0,
  // One insert may carry a backfill of any number of months.
  max_partitions_per_insert_block: '0',
  // Identity contains the hour, and partitions are months: rows of one event never lie in two partitions.
  do_not_merge_across_partitions_select_final: 1,
  // A SELECT whose caller has gone is not worth finishing.
  cancel_http_readonly_queries_on_client_close: 1,
  // An exception after the first rows must break the answer off, not become a row of it.
  http_write_exception_in_output_format: 0,
  // Exact decimals and 64-bit integers survive JSON only as strings.
  output_format_json_quote_decimals: 1,
  output_format_json_quote_64bit_integers: 1,
  output_format_decimal_trailing_zeros: 0,
} as const satisfies ClickHouseSettings;

/** Of a SELECT: one array of objects. */
const ROWS = { default_format: 'JSONEachRow', output_format_json_array_of_rows: '1' };
/** Of everything else: the status must tell the outcome, so nothing may be sent before the statement has ended. */
const AT_THE_END = { wait_end_of_query: '1', send_progress_in_http_headers: '0' };

interface Request {
  readonly path: string;
  readonly body: string | Buffer | FormData;
}

class Connection implements Warehouse {
  readonly #pool: Pool;
  readonly #pings: Pool;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #settings: URLSearchParams;
  readonly #observe: StatementObserver | undefined;
  readonly #timeoutMs: number;

  constructor(options: WarehouseOptions) {
    const { url, user, password, database, application, observe } = options;
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS, maxConnections = MAX_CONNECTIONS } = options;
    const limits = {
      connect: { timeout: requestTimeoutMs },
      headersTimeout: requestTimeoutMs,
      bodyTimeout: requestTimeoutMs,
    };
    this.#pool = new Pool(url, { ...limits, connections: maxConnections });
    this.#pings = new Pool(url, { ...limits, connections: 1 });
    this.#headers = {
      authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
      'user-agent': application,
    };
    this.#settings = withSettings(new URLSearchParams({ database }), SETTINGS);
    this.#observe = observe;
    this.#timeoutMs = requestTimeoutMs;
  }

  async read<Row extends z.ZodType>(statement: Statement, row: Row): Promise<z.output<Row>[]> {
    const rows = await this.#observed(statement.name, async () =>
      JSON.parse(await this.#answer(this.#request(statement, ROWS), true)),
    );
    return z.array(row).parse(rows);
  }

  async run(statement: Statement, body?: string | Buffer): Promise<void> {
    await this.#observed(statement.name, async () => {
      const answer = await this.#answer(this.#request(statement, AT_THE_END, body), body !== undefined);
      if (answer !== '') throw new Error(`${statement.name} was answered with: ${answer.slice(0, 500)}`);
    });
  }

  async ping(): Promise<boolean> {
    try {
      const { statusCode, body } = await this.#pings.request({ method: 'GET', path: '/ping' });
      await body.dump();
      return statusCode === OK;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#pool.destroy(), this.#pings.destroy()]);
  }

  async #observed<T>(name: string, work: () => Promise<T>): Promise<T> {
    const end = this.#observe?.(name);
    try {
      const answer = await work();
      end?.('ok');
      return answer;
    } catch (error) {
      end?.(error instanceof ClickHouseError ? 'refused' : 'unanswered', error);
      throw error;
    }
  }

  /** The statement is the request's body, unless rows are: then it is part of the URL. */
  #request(
    { query, query_params, settings }: Statement,
    more: Record<string, string>,
    rows?: string | Buffer,
  ): Request {
    const search = withSettings(new URLSearchParams(this.#settings), { ...more, ...settings });
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query_params)) parameters.set(`param_${name}`, formatParameter(value));
    const inUrl = `${parameters}`;
    if (rows !== undefined) {
      search.set('query', query);
      return { path: `/?${search}&${inUrl}`, body: rows };
    }
    if (inUrl.length <= MAX_URL_PARAMETERS) return { path: `/?${search}&${inUrl}`, body: query };
    const form = new FormData();
    form.set('query', query);
    for (const [name, value] of parameters) form.set(name, value);
    return { path: `/?${search}`, body: form };
  }

  async #answer(request: Request, isRepeatable: boolean): Promise<string> {
    try {
      return await this.#send(request).catch((error: unknown) => {
        if (!isRepeatable || !isLostConnection(error)) throw error;
        return this.#send(request);
      });
    } catch (error) {
      throw failureOf(error, this.#timeoutMs);
    }
  }

  async #send({ path, body }: Request): Promise<string> {
    const answer = await this.#pool.request({ method: 'POST', path, headers: this.#headers, body });
    const parts: Buffer[] = [];
    try {
      for await (const part of answer.body) parts.push(part);
    } catch (error) {
      // An exception after the first rows ends the connection before the answer's end.
      throw exceptionIn(Buffer.concat(parts), answer.headers) ?? error;
    }
    const bytes = Buffer.concat(parts);
    if (answer.statusCode !== OK || answer.headers['x-clickhouse-exception-code'] !== undefined) {
      throw parseError(bytes.toString());
    }
    const exception = exceptionIn(bytes, answer.headers);
    if (exception) throw exception;
    return bytes.toString();
  }
}

function withSettings(search: URLSearchParams, settings: Readonly<Record<string, unknown>>): URLSearchParams {
  for (const [name, value] of Object.entries(settings)) search.set(name, String(value));
  return search;
}

const CHECK: Statement = { name: 'check_connection', query: 'SELECT 1 AS answer', query_params: {} };

/**
 * Runs a statement, so that a wrong password fails too, and looks at its answer: many servers answer 200 to everything, and
 * would swallow rows as well.
 * @throws the reason why the server cannot be used
 */
export async function checkConnection(warehouse: Warehouse): Promise<void> {
  try {
    const rows = await warehouse.read(CHECK, z.object({ answer: z.literal(1) }));
    if (rows.length === 1) return;
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof z.ZodError)) throw error;
    throw new Error('SELECT 1 did not return 1', { cause: error });
  }
  throw new Error('SELECT 1 did not return 1');
}

const EXAMPLE = 'http://127.0.0.1:8123';
const PROTOCOLS: readonly string[] = ['http:', 'https:'];

/**
 * What is wrong with an address of ClickHouse's HTTP interface, to follow the name of where it came from; undefined
 * when nothing is. A path, credentials or parameters in it would be ignored. The address itself is not repeated: it may
 * hold a password.
 */
export function clickHouseUrlFault(text: string): string | undefined {
  if (!URL.canParse(text)) return `must be a URL such as ${EXAMPLE}`;
  const { protocol, username, password, pathname, search, hash } = new URL(text);
  if (!PROTOCOLS.includes(protocol)) return `must be a URL such as ${EXAMPLE}`;
  const more = [username, password, pathname === '/' ? '' : pathname, search, hash].some((part) => part !== '');
  if (!more) return undefined;
  return (
    `must be a URL such as ${EXAMPLE} and nothing more: user, password and database are named by ` +
    'CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE'
  );
}
