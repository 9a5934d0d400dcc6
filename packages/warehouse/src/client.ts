import { type ClickHouseClient, createClient } from '@clickhouse/client';
import type { StatementObserver } from './observation.js';

/** A connection to Meterline's database; every statement takes one as its first argument. */
export type Warehouse = ClickHouseClient & Pick<WarehouseOptions, 'observe'>;

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

/** Opens a pool of keep-alive connections. It connects at the first statement, so this never fails by itself. */
export function createWarehouse(options: WarehouseOptions): Warehouse {
  const client = createClient({
    url: options.url,
    username: options.user,
    password: options.password,
    database: options.database,
    application: options.application,
    request_timeout: options.requestTimeoutMs ?? 30_000,
    max_open_connections: options.maxConnections ?? 10,
    // The caller logs failures, once and with what they mean; the client would log each of them too.
    log: { level: 127 },
    clickhouse_settings: {
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
    },
  });
  return options.observe ? Object.assign(client, { observe: options.observe }) : client;
}
