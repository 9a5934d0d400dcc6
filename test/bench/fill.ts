/** Events that ClickHouse makes itself, faster than a client could send them: one INSERT, whose columns are expressions of a row's `number`. */
import type { Warehouse } from '@meterline/warehouse';
import { execute } from '../harness/stack.js';

/** Expressions of SQL. */
interface Columns {
  readonly account: string;
  /** Epoch milliseconds. */
  readonly at: string;
  readonly workspace: string;
  readonly resourceType: string;
  readonly resourceName: string;
  readonly resourceUuid: string;
  readonly billingDimension: string;
  readonly usage: string;
  readonly cost: string;
}

/** What an account with one dimension has. */
export const SANDBOX = {
  ...{ workspace: "'production'", resourceType: "'sandbox'", billingDimension: "'sandbox_compute_runtime_gbs'" },
  ...{ usage: 'number % 977', cost: 'number % 977 * 0.0000115' },
};

/**
 * Ids are of version 7, and random but for the time of the event, as producers make them; ClickHouse's own have a counter. The first
 * half of a UUID's text is the lower one of its number.
 * @param definitions of what the columns use, as in WITH
 * @param parameters `rows` of the numbers from `first`, and what the expressions name
 */
export async function fillUsage(
  warehouse: Warehouse,
  columns: Columns,
  definitions: readonly string[],
  { first = 0, ...parameters }: Readonly<Record<string, string | number>> & { readonly rows: number },
): Promise<void> {
  const { account, at, workspace, resourceType, resourceName, resourceUuid, billingDimension, usage, cost } = columns;
  const query = `
INSERT INTO usage_events
  (account_id, event_id, timestamp, workspace, resource_type, resource_name, resource_uuid, billing_dimension,
   usage, revision, voided, cost, price_revision, price_book)
WITH
  ${[...definitions, `toInt64(${at}) AS at_ms`, 'sipHash64(number, at_ms) AS noise', 'sipHash64(noise) AS more_noise'].join(',\n  ')}
SELECT
  ${account},
  reinterpret(
    bitOr(bitShiftLeft(toUInt128(bitOr(bitAnd(more_noise, 0x3fffffffffffffff), 0x8000000000000000)), 64),
          toUInt128(bitOr(bitShiftLeft(toUInt64(at_ms), 16), 0x7000 + noise % 4096))), 'UUID'),
  fromUnixTimestamp64Milli(at_ms, 'UTC'),
  ${[workspace, resourceType, resourceName, resourceUuid, billingDimension, usage].join(',\n  ')},
  0, false, ${cost}, 0, 0
FROM numbers({first: UInt64}, {rows: UInt64})
SETTINGS max_insert_threads = 2, min_insert_block_size_rows = 1000000, max_memory_usage = 0`;
  await execute(warehouse, query, { first, ...parameters });
}
