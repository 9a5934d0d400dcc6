/** An account whose questions are work for ClickHouse, and how much of that work is under way. */
import type { Warehouse } from '@meterline/warehouse';
import { execute, select } from '../harness/stack.js';

const FILL = `
INSERT INTO usage_events (account_id, event_id, timestamp, workspace, resource_type, resource_name, resource_uuid,
                          billing_dimension, usage, revision, voided, cost, price_revision, price_book)
SELECT {account: String}, generateUUIDv4(), toDateTime64({start: UInt32}, 3, 'UTC') + number * 7919 % {seconds: UInt32},
       'production', 'sandbox', concat('sandbox-', toString(number % {groups: UInt32} % 1000)),
       concat('uuid-', toString(number % {groups: UInt32})), 'sandbox_compute_runtime_gbs', number % 977, 0, false,
       number % 977 * 0.0000115, 0, 0
FROM numbers({events: UInt32})`;

export interface ManyGroups {
  readonly account: string;
  /** The first day, in seconds since 1970. */
  readonly start: number;
  readonly days: number;
  /** How many different resources. */
  readonly groups: number;
  readonly events: number;
}

/** Stores events that are spread over the days and the groups, all with a cost. */
export async function fillUsage(
  warehouse: Warehouse,
  { account, start, days, groups, events }: ManyGroups,
): Promise<void> {
  await execute(warehouse, FILL, { account, start, seconds: days * 86_400, groups, events });
}

/** How many questions of query processes by resource_uuid the engine is working on. */
export async function countHeavyStatements(warehouse: Warehouse): Promise<number> {
  const [row] = await select<{ n: string }>(
    warehouse,
    `
SELECT count() AS n
FROM system.processes
WHERE startsWith(http_user_agent, 'meterline-query') AND query LIKE '%resource_uuid%' AND query NOT LIKE '%system.processes%'`,
  );
  return Number(row?.n);
}
