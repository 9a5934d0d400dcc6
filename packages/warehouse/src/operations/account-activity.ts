/** Reads how much each account sends, for `meterline top`. */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../clickhouse/connection.js';

const accountActivity = z.object({
  account: z.string(),
  events: z.coerce.number(),
  rejected: z.coerce.number(),
  /** The hour of the newest event. */
  newestHour: z.string().nullable(),
});
export type AccountActivity = Readonly<z.output<typeof accountActivity>>;

export const ACTIVITY_ORDERS = { events: 'events DESC', rejected: 'rejected DESC', lag: 'newestHour' } as const;

/**
 * Counts the stored events by hour, and the open rejections by time of receipt. An event that was corrected, or a rejection of a job that
 * was delivered twice, may count more than once until a merge. A projection has the counts by hour, so few rows are read.
 */
export async function readAccountActivity(
  warehouse: Warehouse,
  { from, by, limit }: { from: EpochMs; by: keyof typeof ACTIVITY_ORDERS; limit: number },
): Promise<AccountActivity[]> {
  const statement = {
    name: 'read_account_activity',
    query: `
SELECT
  account_id AS account,
  sum(stored) AS events,
  sum(rejections) AS rejected,
  if(events = 0, NULL, formatDateTime(max(hour), '%FT%H:00:00Z')) AS newestHour
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
ORDER BY ${ACTIVITY_ORDERS[by]}, account_id
LIMIT {limit: UInt32}`,
    query_params: { from: from / 1000, limit },
  };
  return warehouse.read(statement, accountActivity);
}
