/** Reads how much each account sends, for `meterline top`. */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../clickhouse/connection.js';

const accountActivity = z.object({
  account: z.string(),
  events: z.coerce.number(),
  rejected: z.coerce.number(),
  /** Epoch seconds of the hour of the newest event, or 0 without events. */
  newest: z.number(),
});
export type AccountActivity = Readonly<z.output<typeof accountActivity>>;

const ORDERS = { events: 'events DESC', rejected: 'rejected DESC', lag: 'newest = 0, newest' } as const;
export type ActivityOrder = keyof typeof ORDERS;
export const ACTIVITY_ORDERS = ['events', 'rejected', 'lag'] as const satisfies readonly ActivityOrder[];

/**
 * Counts the stored events by hour, and the open rejections by time of receipt. An event that was corrected, or a rejection of a job that
 * was delivered twice, may count more than once until a merge. A projection has the counts by hour, so few rows are read.
 */
export async function readAccountActivity(
  warehouse: Warehouse,
  { from, by, limit }: { readonly from: EpochMs; readonly by: ActivityOrder; readonly limit: number },
): Promise<AccountActivity[]> {
  const statement = {
    name: 'read_account_activity',
    query: `
SELECT account_id AS account, sum(stored) AS events, sum(rejections) AS rejected, toUnixTimestamp(max(hour)) AS newest
FROM
(
  SELECT account_id, event_hour AS hour, count() AS stored, 0 AS rejections
  FROM usage_events
  WHERE event_hour >= toDateTime({from: UInt32}, 'UTC')
  GROUP BY event_hour, account_id
  UNION ALL
  SELECT account_id, toDateTime(0, 'UTC'), 0, count()
  FROM rejected_events
  WHERE received_at >= toDateTime({from: UInt32}, 'UTC')
  GROUP BY account_id
)
GROUP BY account_id
ORDER BY ${ORDERS[by]}, account_id
LIMIT {limit: UInt32}`,
    query_params: { from: from / 1000, limit },
  };
  return warehouse.read(statement, accountActivity);
}
