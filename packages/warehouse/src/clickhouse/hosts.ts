/** The servers that the addresses name: which of them a statement goes to, and how it is ended there. */
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
/** The server gives up so much later than its caller, who then has an error of its own; unless `maxExecutionMs` says otherwise. */
const OUTLASTS_CALLER_MS = 5_000;
/** A statement that has just been sent may not be in the server's list yet, so ending it may take more than one KILL. */
const BETWEEN_KILLS_MS = 100;
/** After so long the connection is closed as well: a proxy may bring KILLs to another server, and closing ends a SELECT, too. */
const HANG_UP_MS = 3_000;

/**
 * One server, shards, or shards with replicas. In a cluster each shard keeps its rows in a database of its own,
 * `<database>_local`, with the tables of the migrations; `<database>` holds Distributed tables of the same names, which lead to
 * all shards. So every statement is the same in all forms, whichever of the two databases it is sent to (docs/decisions/0010).
 */
export interface Cluster {
  /** In `remote_servers` of every host. */
  readonly name: string;
  /** How many replicas of a shard must have a row before it counts as stored; undefined: the tables are not replicated. */
  readonly insertQuorum: number | undefined;
}

/** The database of a shard's own tables. */
export function localDatabase(database: string): string {
  return `${database}_local`;
}

export interface HostOptions {
  /** One address, or several that are separated by commas; see `clickHouseUrlFault`. */
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Undefined: one server. */
  readonly cluster?: Cluster | undefined;
  /** How long the server may be silent before a statement counts as failed. */
  readonly requestTimeoutMs?: number;
  /** How long the server may work on a statement. Default: a little longer than its caller waits. */
  readonly maxExecutionMs?: number;
  /** The most memory that the server may use for a statement; what can be sorted or grouped on disk is, from half of it. */
  readonly maxMemoryBytes?: number;
  /** Shown in ClickHouse's logs and in system.query_log. */
  readonly application: string;
}

/** A complete response. */
export interface StatementResponse {
  readonly text: string;
  readonly headers: ResponseHeaders;
}

/** Sends a statement. */
export type Send = (client: ClickHouseClient, params: QueryParams) => Promise<StatementResponse>;

/** Alone of what the client offers, `query` sends long parameters in the body. It adds a FORMAT. */
export const sendQuery: Send = async (client, params) => {
  const result = await client.query({ ...params, format: 'JSONEachRow' });
  return { text: await result.text(), headers: result.response_headers };
};

interface SendOptions {
  /** Whether it may be sent once more when the connection is lost. */
  readonly isRepeatable: boolean;
  readonly signal: AbortSignal | undefined;
}

/** The servers that the addresses name. */
export class Hosts {
  /** In the order in which they are tried. */
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
   * The hosts are tried in order. One that does not respond comes last from then on; what it may have seen is sent again
   * only if that is harmless.
   * @throws the signal's reason once it is aborted, whatever the statement ended with
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
   * Closing the connection would end a SELECT some time later and an INSERT … SELECT never, and would not tell when. So
   * it stays open and the server is asked to kill the statement until the connection says that it has ended: the number
   * of statements under way can be relied on. A user may always end statements of its own.
   */
  async #killUntilEnded(host: ClickHouseClient, id: string, hangUp: AbortController): Promise<void> {
    const query = 'KILL QUERY WHERE query_id = {id: String} AND user = currentUser() ASYNC';
    const deadline = setTimeout(() => hangUp.abort(), HANG_UP_MS);
    while (this.#inFlight.has(hangUp)) {
      // A server that cannot be asked is left alone: the deadline or the statement's own limit of time ends it.
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
    // The client does not send `default`, and a user may have another default database.
    http_headers: database === 'default' ? { 'X-ClickHouse-Database': database } : {},
    application,
    request_timeout: timeoutMs,
    // No statement waits for another: their number is bounded where they are made, by permits and by batches.
    max_open_connections: Number.POSITIVE_INFINITY,
    // Where this process was busy for long, the server may have closed one; most statements must not be sent twice.
    keep_alive: { eagerly_destroy_stale_sockets: true },
    use_multipart_params_auto: true,
    // What it would log is thrown.
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: {
      ...SETTINGS,
      ...(cluster && clusterSettings(cluster, timeoutMs)),
      max_execution_time: Math.ceil(maxExecutionMs / 1000),
      ...(maxMemoryBytes !== undefined && memoryLimits(maxMemoryBytes)),
    },
  });
}

/** A replica that does not answer ends an insert by so much of the time that its caller waits. */
const QUORUM_SHARE = 0.5;

/** For every statement in a cluster. */
export function clusterSettings({ insertQuorum }: Cluster, requestTimeoutMs: number): Readonly<Record<string, string>> {
  return {
    // An insert through a Distributed table returns when its rows are stored in their shard, not before they are sent there.
    distributed_foreground_insert: '1',
    // A query of one account is sent to its shard alone.
    optimize_skip_unused_shards: '1',
    // INSERT … SELECT must not pair up the shards of its two tables.
    parallel_distributed_insert_select: '0',
    // A subquery in IN is run once, over all shards, and not by each shard over its own rows.
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
