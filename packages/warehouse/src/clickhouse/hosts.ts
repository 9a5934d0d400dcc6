/** Sends statements to the configured servers. Fails over between servers, and kills aborted statements. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type ClickHouseClient,
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
  type QueryParams,
  type ResponseHeaders,
} from '@clickhouse/client';
import { hostsOf } from '../addresses.js';
import { failureOf, isLostConnection, isNoConnection, noResponse } from './errors.js';
import { SETTINGS } from './settings.js';

const REQUEST_TIMEOUT_MS = 30_000;
/** The server stops a statement this long after the request timeout, at which the caller gets an error. */
const OUTLASTS_CALLER_MS = 5_000;
/** KILL is repeated at this interval, because a statement that was just sent may not be in the server's process list yet. */
const BETWEEN_KILLS_MS = 100;
/** After this time, the connection is closed as well, which ends a SELECT. A proxy may have sent the KILLs to another server. */
const HANG_UP_MS = 3_000;

/**
 * A cluster of shards, with or without replicas. Each shard stores its rows in the database `<database>_local`, which has the tables of the
 * migrations. The database `<database>` has Distributed tables with the same names, which cover all shards. So a statement has the same
 * text on a single server and in a cluster, and in either database (docs/decisions/0010).
 */
export interface Cluster {
  readonly name: string;
  /** The number of replicas that must store a row before the insert succeeds. Undefined if the tables are not replicated. */
  readonly insertQuorum: number | undefined;
}

export function localDatabase(database: string): string {
  return `${database}_local`;
}

export interface HostOptions {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly cluster?: Cluster | undefined;
  /** How long to wait for data from the server before a statement fails. */
  readonly requestTimeoutMs?: number;
  /** How long the server may work on a statement (default: slightly longer than the request timeout). */
  readonly maxExecutionMs?: number;
  /** Maximum memory of a statement on the server. Above half of this limit, the server sorts and groups on disk. */
  readonly maxMemoryBytes?: number;
  readonly application: string;
}

export interface StatementResponse {
  readonly text: string;
  readonly headers: ResponseHeaders;
}

export type Send = (client: ClickHouseClient, params: QueryParams) => Promise<StatementResponse>;

/** Uses `query`, the client's only method that sends long parameters in the body. It appends a FORMAT clause to the statement. */
export const sendQuery: Send = async (client, params) => {
  const result = await client.query({ ...params, format: 'JSONEachRow' });
  return { text: await result.text(), headers: result.response_headers };
};

interface SendOptions {
  readonly isRepeatable: boolean;
  readonly signal: AbortSignal | undefined;
}

export class Hosts {
  #hosts: readonly ClickHouseClient[];
  readonly #timeoutMs: number;
  readonly #inFlight = new Set<AbortController>();
  #isClosed = false;

  constructor(options: HostOptions) {
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
    this.#hosts = hostsOf(options.url).map((url) => openClient(url, options, requestTimeoutMs));
    this.#timeoutMs = requestTimeoutMs;
  }

  async ping(): Promise<boolean> {
    const ping: Send = async (client) => {
      const result = await client.ping();
      if (!result.success) throw result.error;
      return { text: '', headers: {} };
    };
    return this.send({ query: '' }, { isRepeatable: true, signal: undefined }, ping).then(
      () => true,
      () => false,
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const statement of this.#inFlight) statement.abort();
    await Promise.all(this.#hosts.map((host) => host.close()));
  }

  /**
   * Tries the hosts in order, and moves a host that fails to the end. If a host may have received a statement, the statement is sent again
   * only if it is repeatable.
   * @throws the signal's reason once the signal is aborted, even if the statement succeeded
   */
  async send(params: QueryParams, options: SendOptions, send: Send): Promise<StatementResponse> {
    const { signal } = options;
    let mayRepeat = options.isRepeatable;
    let failure: unknown;
    for (const host of [...this.#hosts, ...this.#hosts]) {
      if (this.#isClosed) break;
      try {
        const response = await this.#sendTo(host, params, options, send);
        signal?.throwIfAborted();
        return response;
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof ClickHouseError) throw error;
        failure = failureOf(error, this.#timeoutMs);
        if (host === this.#hosts[0]) this.#hosts = [...this.#hosts.slice(1), host];
        if (isNoConnection(error)) continue;
        if (!mayRepeat || !isLostConnection(error)) break;
        mayRepeat = false;
      }
    }
    throw this.#isClosed ? noResponse('the connection was closed', 'ECONNRESET', failure) : failure;
  }

  async #sendTo(
    host: ClickHouseClient,
    params: QueryParams,
    { signal }: SendOptions,
    send: Send,
  ): Promise<StatementResponse> {
    const query_id = randomUUID();
    const hangUp = new AbortController();
    const onAbort = () => void this.#killUntilEnded(host, query_id, hangUp);
    this.#inFlight.add(hangUp);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      return await send(host, { ...params, query_id, abort_signal: hangUp.signal });
    } finally {
      this.#inFlight.delete(hangUp);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Sends KILL statements until the connection reports that the statement has ended. Only then does the promise of the statement settle, so
   * that callers count running statements correctly. Closing the connection instead would not work: a SELECT would end only some time
   * later, an INSERT … SELECT would never end, and nothing would report the end. A user may always kill their own statements.
   */
  async #killUntilEnded(host: ClickHouseClient, id: string, hangUp: AbortController): Promise<void> {
    const query = 'KILL QUERY WHERE query_id = {id: String} AND user = currentUser() ASYNC';
    const deadline = setTimeout(() => hangUp.abort(), HANG_UP_MS);
    while (this.#inFlight.has(hangUp)) {
      // Ignore a failed KILL. The deadline or the statement's own time limit will end the statement.
      await sendQuery(host, { query, query_params: { id } }).catch(() => undefined);
      await delay(BETWEEN_KILLS_MS);
    }
    clearTimeout(deadline);
  }
}

function openClient(url: string, options: HostOptions, timeoutMs: number): ClickHouseClient {
  const { user, password, database, application, cluster, maxMemoryBytes } = options;
  const { maxExecutionMs = timeoutMs + OUTLASTS_CALLER_MS } = options;
  return createClient({
    url,
    username: user,
    password,
    database,
    // The client sends no database if it is `default`. The server would then use the user's default database, which may be another one.
    http_headers: database === 'default' ? { 'X-ClickHouse-Database': database } : {},
    application,
    request_timeout: timeoutMs,
    // No limit, so that statements never wait for a connection. The callers already limit the number of concurrent statements.
    max_open_connections: Number.POSITIVE_INFINITY,
    // Do not use a connection that the server may have closed while this process was busy. Most statements must not be sent twice.
    keep_alive: { eagerly_destroy_stale_sockets: true },
    use_multipart_params_auto: true,
    // Turn off the client's log, because the client also throws everything that it would log.
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: {
      ...SETTINGS,
      ...(cluster && clusterSettings(cluster, timeoutMs)),
      max_execution_time: Math.ceil(maxExecutionMs / 1000),
      ...(maxMemoryBytes !== undefined && memoryLimits(maxMemoryBytes)),
    },
  });
}

/** An insert stops waiting for an unresponsive replica after this share of the request timeout. */
const QUORUM_SHARE = 0.5;

export function clusterSettings({ insertQuorum }: Cluster, requestTimeoutMs: number): Readonly<Record<string, string>> {
  return {
    // An insert through a Distributed table returns only after its shard has stored the rows.
    distributed_foreground_insert: '1',
    // Send a query about one account only to that account's shard.
    optimize_skip_unused_shards: '1',
    // INSERT … SELECT must not copy shard by shard from one table to the other.
    parallel_distributed_insert_select: '0',
    // Run a subquery in IN once, over all shards. Otherwise each shard would run it over its own rows only.
    distributed_product_mode: 'global',
    ...(insertQuorum !== undefined && {
      insert_quorum: String(insertQuorum),
      insert_quorum_parallel: '1',
      insert_quorum_timeout: String(Math.floor(requestTimeoutMs * QUORUM_SHARE)),
    }),
  };
}

function memoryLimits(bytes: number): ClickHouseSettings {
  const half = String(Math.floor(bytes / 2));
  return {
    max_memory_usage: String(bytes),
    max_bytes_before_external_group_by: half,
    max_bytes_before_external_sort: half,
  };
}
