import { type ClickHouseClient, createClient } from '@clickhouse/client';
import type { StatementObserver } from './observation.js';
import { StatementPool } from './statement-pool.js';

/** A connection to Meterline's database; every statement takes one as its first argument. */
export interface Warehouse extends ClickHouseClient, Pick<WarehouseOptions, 'observe'> {
  readonly statements: StatementPool;
}

export interface WarehouseOptions {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** How long one statement may take before it counts as failed. */
  readonly requestTimeoutMs?: number;
  readonly maxConnections?: number;
  /** Shown in ClickHouse's logs and in system.query_log. */
  readonly application: string;
  /** Told of every statement. */
  readonly observe?: StatementObserver;
}

const SETTINGS = {
  // Acknowledged must mean durable: a row handed to the server's buffer would be lost with it.
  async_insert: 0,
  // The same rows may be sent again on purpose (a retry, a replay after an erase); keys alone decide.
  insert_deduplicate: 0,
  // One insert may carry a backfill of any number of months.
  max_partitions_per_insert_block: '0',
  // Identity contains the hour, and partitions are months: rows of one event never lie in two partitions.
  do_not_merge_across_partitions_select_final: 1,
  // A question that nobody waits for any more is not worth finishing.
  cancel_http_readonly_queries_on_client_close: 1,
  // Exact decimals and 64-bit integers survive JSON only as strings.
  output_format_json_quote_decimals: 1,
  output_format_json_quote_64bit_integers: 1,
  output_format_decimal_trailing_zeros: 0,
} as const;

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 10;

/** Opens pools of keep-alive connections. They connect at the first statement, so this never fails by itself. */
export function createWarehouse(options: WarehouseOptions): Warehouse {
  const { requestTimeoutMs = REQUEST_TIMEOUT_MS, maxConnections = MAX_CONNECTIONS, observe } = options;
  const client = createClient({
    url: options.url,
    username: options.user,
    password: options.password,
    database: options.database,
    application: options.application,
    request_timeout: requestTimeoutMs,
    max_open_connections: maxConnections,
    // The caller logs failures, once and with what they mean; the client would log each of them too.
    log: { level: 127 },
    clickhouse_settings: SETTINGS,
  });
  const statements = new StatementPool({ ...options, requestTimeoutMs, maxConnections, settings: SETTINGS });
  const closeClient = client.close.bind(client);
  const close = async () => {
    await Promise.all([closeClient(), statements.close()]);
  };
  return Object.assign(client, { statements, close, ...(observe && { observe }) });
}
