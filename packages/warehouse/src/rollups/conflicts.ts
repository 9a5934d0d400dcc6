/** Finds different events with the same ID and revision. Only one counts, and a merge removes the other (docs/guarantees.md). */
import type { EpochMs } from '@meterline/catalog';
import { z } from 'zod';
import { LOW_PRIORITY, type Warehouse } from '../clickhouse/connection.js';
import { type Selected, selectHours } from './sources.js';

export interface Conflicts {
  /** The number of conflicts found. A conflict is no longer found once a merge in ClickHouse has removed one of its rows. */
  readonly events: number;
  readonly first?: { readonly accountId: string; readonly hour: EpochMs; readonly eventId: string };
}

const conflict = z.object({
  accountId: z.string(),
  second: z.number(),
  eventId: z.string(),
  events: z.coerce.number(),
});

/** SQL: the bits of row_version that are a hash of what the producer sent. Source: clickhouse/migrations/0001_usage_events.sql. */
const CONTENT = 'bitAnd(row_version, toUInt128(0xFFFFFFFFFFFF))';

export function readConflictsOfHours(shard: Warehouse, from: EpochMs, to: EpochMs): Promise<Conflicts> {
  return readConflicts(shard, selectHours('hourly', from, to));
}

/** If the statement fails, returns no conflicts, because the result is only reported. Metrics record the failure as usual. */
export async function readConflicts(shard: Warehouse, { condition, query_params }: Selected): Promise<Conflicts> {
  const statement = {
    name: 'read_conflicting_events',
    query: `
SELECT
  account_id AS accountId,
  toUnixTimestamp(event_hour) AS second,
  toString(any(event_id)) AS eventId,
  count() OVER () AS events
FROM usage_events
PREWHERE ${condition}
GROUP BY account_id, event_hour, UUIDToNum(event_id), revision
HAVING min(${CONTENT}) < max(${CONTENT})
LIMIT 1`,
    query_params,
    settings: { ...LOW_PRIORITY, optimize_aggregation_in_order: 1 } as const,
  };
  try {
    const [found] = await shard.read(statement, conflict);
    if (!found) return { events: 0 };
    const { events, accountId, second, eventId } = found;
    return { events, first: { accountId, hour: second * 1000, eventId } };
  } catch {
    return { events: 0 };
  }
}

export function allConflicts(parts: readonly Conflicts[]): Conflicts {
  const events = parts.reduce((sum, part) => sum + part.events, 0);
  const first = parts.find((part) => part.first)?.first;
  return { events, ...(first && { first }) };
}
