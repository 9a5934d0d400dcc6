/** Reads how much each account sends, for `meterline top`. */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import type { Warehouse } from '../clickhouse/connection.js';
import { openConditions } from './rejections.js';

const accountActivity = z.object({
  account: z.string(),
  /** The number of stored revisions. */
  revisions: z.coerce.number(),
  rejected: z.coerce.number(),
  /** The hour of the newest event. */
  newestHour: z.string().nullable(),
});
export type AccountActivity = Readonly<z.output<typeof accountActivity>>;

export const ACTIVITY_ORDERS = { revisions: 'revisions DESC', rejected: 'rejected DESC', lag: 'newestHour' } as const;

/**
 * Counts the stored revisions by hour, and the open rejections by time of receipt. Counts revisions instead of events, because a projection
 * of the table has their number by hour, so few rows are read. The count falls when a merge removes replaced revisions.
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
  sum(stored) AS revisions,
  sum(rejections) AS rejected,
  if(revisions = 0, NULL, formatDateTime(max(hour), '%FT%H:00:00Z')) AS newestHour
FROM
(
  SELECT account_id, event_hour AS hour, count() AS stored, 0 AS rejections
  FROM usage_events
  WHERE event_hour >= toDateTime(intDiv({from: Int64}, 1000), 'UTC')
  GROUP BY event_hour, account_id
  UNION ALL
  SELECT account_id, toDateTime(0, 'UTC'), 0, count()
  FROM rejected_events FINAL
  WHERE ${openConditions({ from }).join('\n    AND ')}
  GROUP BY account_id
)
GROUP BY account_id
ORDER BY ${ACTIVITY_ORDERS[by]}, account_id
LIMIT {limit: UInt32}`,
    query_params: { from, limit },
  };
  return warehouse.read(statement, accountActivity);
}
