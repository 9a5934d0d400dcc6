/**
 * The one way to ClickHouse. Every statement, insert and migration goes through `read` or `run` of a {@link Warehouse},
 * so this file alone observes, retries, times out and escapes. Why it is undici's pool and not the official client:
 * docs/decisions/0010.
 */
import { randomUUID } from 'node:crypto';
import { ClickHouseError, type ClickHouseSettings, parseError } from '@clickhouse/client';
import { FormData } from 'undici';
import { z } from 'zod';
import { clusterSettings } from '../cluster/cluster.js';
import { endedByAbort } from './cancelling.js';
import { exceptionIn, failureOf, isLostConnection } from './errors.js';
import { HostTurns } from './host-turns.js';
import { type Host, openHosts } from './hosts.js';
import {
  formatParameter,
  type Scope,
  type Statement,
  type StatementObserver,
  type Warehouse,
  type WarehouseOptions,
} from './warehouse.js';

export type {
  Relation,
  Scope,
  Statement,
  StatementEnd,
  StatementObserver,
  StatementOutcome,
  Warehouse,
  WarehouseOptions,
} from './warehouse.js';

/** Opens a pool of keep-alive connections. They connect at the first statement, so this never fails by itself. */
export function createWarehouse(options: WarehouseOptions): Warehouse {
  return new Connection(options);
}

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 10;
/** By so much the server gives up later than its caller, who then has an error of its own; unless `maxExecutionMs` says otherwise. */
const OUTLASTS_CALLER_MS = 5_000;
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
  readonly isShort: boolean;
  readonly signal: AbortSignal | undefined;
  /** Whether it may be sent once more when the connection is lost. */
  readonly isRepeatable: boolean;
}

class Connection implements Warehouse {
  readonly #hosts: readonly Host[];
  readonly #turns: HostTurns;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #settings: URLSearchParams;
  readonly #observe: StatementObserver | undefined;
  readonly #timeoutMs: number;

  constructor(options: WarehouseOptions) {
    const { url, user, password, database, application, observe, cluster } = options;
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS, maxConnections = MAX_CONNECTIONS, maxMemoryBytes } = options;
    const { maxExecutionMs = requestTimeoutMs + OUTLASTS_CALLER_MS } = options;
    this.#hosts = openHosts(url, requestTimeoutMs, maxConnections);
    this.#turns = new HostTurns(this.#hosts);
    this.#headers = {
      authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
      'user-agent': application,
    };
    this.#settings = withSettings(new URLSearchParams({ database }), {
      ...SETTINGS,
      ...(cluster && clusterSettings(cluster, requestTimeoutMs)),
      max_execution_time: Math.ceil(maxExecutionMs / 1000),
      ...(maxMemoryBytes !== undefined && memoryLimits(maxMemoryBytes)),
    });
    this.#observe = observe;
    this.#timeoutMs = requestTimeoutMs;
  }

  read<Row extends z.ZodType>(statement: Statement, row: Row): Promise<z.output<Row>[]> {
    return this.#read({}, statement, row);
  }

  run(statement: Statement, body?: string | Buffer): Promise<void> {
    return this.#run({}, statement, body);
  }

  within(scope: Scope): Warehouse {
    return {
      read: (statement, row) => this.#read(scope, statement, row),
      run: (statement, body) => this.#run(scope, statement, body),
      within: (inner) => this.within({ ...scope, ...inner, settings: { ...scope.settings, ...inner.settings } }),
      ping: () => this.ping(),
      close: () => this.close(),
    };
  }

  async #read<Row extends z.ZodType>(scope: Scope, statement: Statement, row: Row): Promise<z.output<Row>[]> {
    const request = { ...this.#request(scope, statement, ROWS), isRepeatable: true };
    const rows = await this.#observed(scope, statement.name, async () => JSON.parse(await this.#answer(request)));
    return z.array(row).parse(rows);
  }

  async #run(scope: Scope, statement: Statement, body?: string | Buffer): Promise<void> {
    const request = { ...this.#request(scope, statement, AT_THE_END, body), isRepeatable: body !== undefined };
    await this.#observed(scope, statement.name, async () => {
      const answer = await this.#answer(request);
      if (answer !== '') throw new Error(`${statement.name} was answered with: ${answer.slice(0, 500)}`);
    });
  }

  async ping(): Promise<boolean> {
    try {
      const send = ({ pings }: Host, signal: AbortSignal) => pings.request({ method: 'GET', path: '/ping', signal });
      const { statusCode, body } = await this.#turns.send(send, true);
      await body.dump();
      return statusCode === OK;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    const pools = this.#hosts.flatMap(({ statements, short, pings }) => [statements, short, pings]);
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  async #observed<T>({ signal }: Scope, name: string, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    const end = this.#observe?.(name);
    try {
      const answer = await work();
      end?.('ok');
      return answer;
    } catch (error) {
      if (signal?.aborted) end?.('cancelled', error);
      else end?.(error instanceof ClickHouseError ? 'refused' : 'unanswered', error);
      throw error;
    }
  }

  /** The statement is the request's body, unless rows are: then it is part of the URL. */
  #request(
    scope: Scope,
    { query, query_params, settings, isShort }: Statement,
    more: Record<string, string>,
    rows?: string | Buffer,
  ): Omit<Request, 'isRepeatable'> {
    const search = withSettings(new URLSearchParams(this.#settings), { ...more, ...scope.settings, ...settings });
    const common = { isShort: isShort === true, signal: scope.signal };
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query_params)) parameters.set(`param_${name}`, formatParameter(value));
    const inUrl = `${parameters}`;
    if (rows !== undefined) {
      search.set('query', query);
      return { ...common, path: `/?${search}&${inUrl}`, body: rows };
    }
    if (inUrl.length <= MAX_URL_PARAMETERS) return { ...common, path: `/?${search}&${inUrl}`, body: query };
    const form = new FormData();
    form.set('query', query);
    for (const [name, value] of parameters) form.set(name, value);
    return { ...common, path: `/?${search}`, body: form };
  }

  async #answer(request: Request): Promise<string> {
    const { signal, isRepeatable } = request;
    const send = () =>
      this.#turns.send(
        (host, left) =>
          signal ? this.#sendCancellable(host, request, signal, left) : this.#send(host, { ...request, signal: left }),
        isRepeatable,
      );
    try {
      return await send().catch((error: unknown) => {
        if (!isRepeatable || signal?.aborted || !isLostConnection(error)) throw error;
        return send();
      });
    } catch (error) {
      throw failureOf(error, this.#timeoutMs);
    }
  }

  #sendCancellable(host: Host, request: Request, signal: AbortSignal, left: AbortSignal): Promise<string> {
    const queryId = randomUUID();
    const hangUp = new AbortController();
    const path = `${request.path}&query_id=${queryId}`;
    return endedByAbort(this.#send(host, { ...request, path, signal: AbortSignal.any([hangUp.signal, left]) }), {
      signal,
      kill: () => this.#kill(host, queryId),
      hangUp: () => hangUp.abort(),
    });
  }

  /** Not read_only, so it does not go through `read`. A user may always end statements of its own. */
  async #kill({ short }: Host, queryId: string): Promise<void> {
    const path = `/?${new URLSearchParams({ param_id: queryId })}`;
    const body = 'KILL QUERY WHERE query_id = {id: String} AND user = currentUser() ASYNC';
    const answer = await short.request({ method: 'POST', path, headers: this.#headers, body });
    await answer.body.dump();
  }

  async #send(host: Host, { path, body, isShort, signal }: Omit<Request, 'isRepeatable'>): Promise<string> {
    const pool = isShort ? host.short : host.statements;
    const answer = await pool.request({ method: 'POST', path, headers: this.#headers, body, signal: signal ?? null });
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

function memoryLimits(bytes: number): ClickHouseSettings {
  const half = String(Math.floor(bytes / 2));
  return {
    max_memory_usage: String(bytes),
    max_bytes_before_external_group_by: half,
    max_bytes_before_external_sort: half,
  };
}

function withSettings(search: URLSearchParams, settings: Readonly<Record<string, unknown>>): URLSearchParams {
  for (const [name, value] of Object.entries(settings)) search.set(name, String(value));
  return search;
}

const CHECK: Statement = { name: 'check_connection', query: 'SELECT 1 AS answer', query_params: {}, isShort: true };

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
