/** Stores rejected events and jobs with the reason and the payload. Operators list rejections, read their payloads and settle them. */
import { type EpochMs, REJECTION_REASONS, type RejectionReason } from '@meterline/catalog';
import { z } from 'zod';
import {
  insertRows,
  onEachShard,
  type Parameter,
  type PreparedInsert,
  prepareRows,
  type Warehouse,
} from '../clickhouse/connection.js';
import type { Shards } from '../shards.js';

export interface RejectedEvent {
  readonly receivedAt: EpochMs;
  readonly jobId: string;
  readonly position: number;
  /** The account that the event names. Empty if the event is unreadable. */
  readonly accountId: string;
  readonly reason: RejectionReason;
  readonly message: string;
  readonly payload: string;
}

export function prepareRejectedEvents(events: readonly RejectedEvent[]): PreparedInsert {
  const rows = events.map(({ receivedAt, jobId, position, accountId, reason, message, payload }) => ({
    received_at: receivedAt,
    job_id: jobId,
    position,
    account_id: accountId,
    reason,
    message,
    payload,
  }));
  return prepareRows('rejected_events', rows);
}

/** Identifies a rejection. The ID is derived from the row's key, so a redelivered job yields the same IDs. */
export interface RejectionId {
  readonly receivedAt: EpochMs;
  readonly fingerprint: bigint;
}

export interface RejectionFilter {
  readonly from?: EpochMs | undefined;
  readonly to?: EpochMs | undefined;
  readonly reason?: RejectionReason | undefined;
  readonly accountId?: string | undefined;
  readonly jobId?: string | undefined;
  readonly fingerprint?: bigint | undefined;
}

export interface RejectionPage {
  readonly limit: number;
  readonly after?: OpenRejection | undefined;
}

const FINGERPRINT = 'sipHash64(job_id, position, payload)';

/** The SQL condition of each filter field. The SQL parameter has the same name as the field. */
const CONDITIONS = {
  from: "received_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')",
  to: "received_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')",
  reason: 'reason = {reason: String}',
  accountId: 'account_id = {accountId: String}',
  jobId: 'job_id = {jobId: String}',
  fingerprint: `${FINGERPRINT} = {fingerprint: UInt64}`,
} as const satisfies Record<keyof RejectionFilter, string>;

const AFTER = `(received_at, job_id, position, fingerprint)
    < (fromUnixTimestamp64Milli({after_time: Int64}, 'UTC'), {after_job: String}, {after_position: UInt32}, {after_fingerprint: UInt64})`;

const rejectionId = z.object({ receivedAt: z.coerce.number(), fingerprint: z.coerce.bigint() });

const openRejection = rejectionId.extend({
  jobId: z.string(),
  position: z.number(),
  /** The account that the event names. Empty if the event is unreadable. */
  accountId: z.string(),
  reason: z.enum(REJECTION_REASONS),
  message: z.string(),
  payloadBytes: z.coerce.number(),
});

/** An unsettled rejection, without its payload, which may take megabytes. */
export type OpenRejection = Readonly<z.output<typeof openRejection>>;

export async function readOpenRejections(
  warehouse: Warehouse,
  filter: RejectionFilter,
  { limit, after }: RejectionPage,
): Promise<OpenRejection[]> {
  const statement = {
    name: 'read_open_rejections',
    query: `
SELECT
  toUnixTimestamp64Milli(received_at) AS receivedAt,
  ${FINGERPRINT} AS fingerprint,
  job_id AS jobId,
  position,
  account_id AS accountId,
  reason,
  message,
  length(payload) AS payloadBytes
FROM rejected_events FINAL
WHERE ${[...openConditions(filter), ...(after ? [AFTER] : [])].join('\n  AND ')}
ORDER BY received_at DESC, job_id DESC, position DESC, fingerprint DESC
LIMIT {limit: UInt32}`,
    query_params: {
      ...parameters(filter),
      limit,
      ...(after && {
        after_time: after.receivedAt,
        after_job: after.jobId,
        after_position: after.position,
        after_fingerprint: after.fingerprint,
      }),
    },
  };
  return warehouse.read(statement, openRejection);
}

/** The first condition uses the table's key to limit the rows that are read. */
const HAS_ID = `received_at IN arrayMap(t -> fromUnixTimestamp64Milli(t, 'UTC'), {times: Array(Int64)})
  AND (toUnixTimestamp64Milli(received_at), ${FINGERPRINT})
    IN arrayZip({times: Array(Int64)}, {fingerprints: Array(UInt64)})`;

function idParameters(ids: readonly RejectionId[]): Record<string, Parameter> {
  return {
    times: ids.map(({ receivedAt }) => receivedAt),
    fingerprints: ids.map(({ fingerprint }) => fingerprint),
  };
}

/** Returns the payloads in the order of the IDs, with undefined for a rejection that was settled in the meantime. */
export async function readRejectionPayloads(
  warehouse: Warehouse,
  ids: readonly RejectionId[],
): Promise<(string | undefined)[]> {
  if (ids.length === 0) return [];
  const statement = {
    name: 'read_rejection_payloads',
    query: `
SELECT DISTINCT
  toUnixTimestamp64Milli(received_at) AS receivedAt,
  ${FINGERPRINT} AS fingerprint,
  payload
FROM rejected_events
WHERE ${HAS_ID}`,
    query_params: idParameters(ids),
  };
  const rows = await warehouse.read(statement, rejectionId.extend({ payload: z.string() }));
  const payloads = new Map(rows.map((row) => [`${row.receivedAt} ${row.fingerprint}`, row.payload]));
  return ids.map(({ receivedAt, fingerprint }) => payloads.get(`${receivedAt} ${fingerprint}`));
}

export type SettlementOutcome = 'replayed' | 'discarded';

/**
 * Settles rejections permanently (as replayed or discarded) and deletes their rows. The settlement is recorded first. So after a crash in
 * between, readers skip the rows, and a redelivered job that writes them again reopens nothing. Settling a rejection again changes nothing.
 */
export async function settleRejections(
  { whole, all }: Shards,
  ids: readonly RejectionId[],
  outcome: SettlementOutcome,
): Promise<void> {
  if (ids.length === 0) return;
  const settled = ids.map(({ receivedAt, fingerprint }) => ({
    received_at: new Date(receivedAt).toISOString().slice(0, -1),
    fingerprint: String(fingerprint),
    outcome,
  }));
  await insertRows(whole, 'settled_rejections', settled);
  const statement = {
    name: 'delete_rejections',
    // Use a lightweight delete. ALTER TABLE … DELETE would rewrite every part for a few rows.
    query: `
DELETE FROM rejected_events
WHERE ${HAS_ID}`,
    query_params: idParameters(ids),
  };
  await onEachShard(all, (shard) => shard.run(statement));
}

/** Selects rejections that are not settled, in a query with FINAL. The SQL parameters have the names of the filter's fields. */
export function openConditions(filter: RejectionFilter): string[] {
  const selected = conditions(filter);
  // Limit the subquery to the filter's time range, because ClickHouse holds all rows of the subquery in memory.
  const times = conditions({ from: filter.from, to: filter.to });
  const settled = `SELECT received_at, fingerprint FROM settled_rejections${times.length > 0 ? ` WHERE ${times.join(' AND ')}` : ''}`;
  return [...selected, `(received_at, ${FINGERPRINT}) NOT IN (${settled})`];
}

function conditions(filter: RejectionFilter): string[] {
  return Object.entries(CONDITIONS).flatMap(([name, condition]) => (name in parameters(filter) ? [condition] : []));
}

function parameters(filter: RejectionFilter): Record<string, Parameter> {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}
