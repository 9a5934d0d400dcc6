/** Refused events as an operator deals with them: found, shown, and settled for good. */
import { type EpochMs, REJECTION_REASONS, type RejectionReason } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { insertRows } from '../clickhouse/insert.js';
import type { Parameter } from '../clickhouse/warehouse.js';
import type { Shards } from '../cluster/shards.js';

/** Identifies one refusal permanently: it follows from the row's key, so a redelivered job has the same ids. */
export interface RejectionId {
  readonly receivedAt: EpochMs;
  /** 64 bits: a hash of the job's id, the position and the payload. */
  readonly fingerprint: bigint;
}

/** A refusal that nobody has settled yet, without its payload, which may be megabytes. */
export interface OpenRejection extends RejectionId {
  readonly jobId: string;
  readonly position: number;
  /** As the event claims; empty when that cannot be read. */
  readonly accountId: string;
  readonly reason: RejectionReason;
  readonly message: string;
  readonly payloadBytes: number;
}

/** The refusals that match every field that is given. */
export interface RejectionFilter {
  /** Received at this time or later. */
  readonly from?: EpochMs | undefined;
  /** Received before. */
  readonly to?: EpochMs | undefined;
  readonly reason?: RejectionReason | undefined;
  readonly accountId?: string | undefined;
  readonly jobId?: string | undefined;
  readonly position?: number | undefined;
  readonly payload?: string | undefined;
  readonly fingerprint?: bigint | undefined;
}

export interface RejectionPage {
  readonly limit: number;
  /** Only those that come after this one in the order. */
  readonly after?: OpenRejection | undefined;
}

const FINGERPRINT = 'sipHash64(job_id, position, payload)';

/** Each has one parameter, named like the field. */
const CONDITIONS = {
  from: "received_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')",
  to: "received_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')",
  reason: 'reason = {reason: String}',
  accountId: 'account_id = {accountId: String}',
  jobId: 'job_id = {jobId: String}',
  position: 'position = {position: UInt32}',
  payload: 'payload = {payload: String}',
  fingerprint: `${FINGERPRINT} = {fingerprint: UInt64}`,
} as const satisfies Record<keyof RejectionFilter, string>;

const AFTER = `(received_at, job_id, position, fingerprint)
    < (fromUnixTimestamp64Milli({after_time: Int64}, 'UTC'), {after_job: String}, {after_position: UInt32}, {after_fingerprint: UInt64})`;

/** The newest first, and of one job the highest position first: a reference comes before what it refers to. */
export function openRejectionsStatement(filter: RejectionFilter, { limit, after }: RejectionPage): Statement {
  return {
    name: 'read_open_rejections',
    query: `
SELECT
  toUnixTimestamp64Milli(received_at) AS received_ms,
  ${FINGERPRINT} AS fingerprint,
  job_id,
  position,
  account_id,
  reason,
  message,
  length(payload) AS payload_bytes
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
        after_fingerprint: String(after.fingerprint),
      }),
    },
  };
}

const openRow = z.object({
  received_ms: z.string(),
  fingerprint: z.string(),
  job_id: z.string(),
  position: z.number(),
  account_id: z.string(),
  reason: z.enum(REJECTION_REASONS),
  message: z.string(),
  payload_bytes: z.string(),
});

export async function readOpenRejections(
  warehouse: Warehouse,
  filter: RejectionFilter,
  page: RejectionPage,
): Promise<OpenRejection[]> {
  const rows = await warehouse.read(openRejectionsStatement(filter, page), openRow);
  return rows.map((row) => ({
    receivedAt: Number(row.received_ms),
    fingerprint: BigInt(row.fingerprint),
    jobId: row.job_id,
    position: row.position,
    accountId: row.account_id,
    reason: row.reason,
    message: row.message,
    payloadBytes: Number(row.payload_bytes),
  }));
}

export function countOpenRejectionsStatement(filter: RejectionFilter): Statement {
  return {
    name: 'count_open_rejections',
    query: `
SELECT count() AS rejections
FROM rejected_events FINAL
WHERE ${openConditions(filter).join('\n  AND ')}`,
    query_params: parameters(filter),
  };
}

export async function countOpenRejections(warehouse: Warehouse, filter: RejectionFilter): Promise<number> {
  const row = z.object({ rejections: z.string() });
  const [counted] = await warehouse.read(countOpenRejectionsStatement(filter), row);
  return Number(counted?.rejections);
}

/**
 * The condition that selects exactly these refusals, with parameters `times` and `fingerprints`: see
 * {@link idParameters}. The first part narrows what is read, by the table's key.
 */
const HAS_ID = `received_at IN arrayMap(t -> fromUnixTimestamp64Milli(t, 'UTC'), {times: Array(Int64)})
  AND (toUnixTimestamp64Milli(received_at), ${FINGERPRINT})
    IN arrayZip({times: Array(Int64)}, {fingerprints: Array(UInt64)})`;

function idParameters(ids: readonly RejectionId[]): Record<string, Parameter> {
  return {
    times: ids.map(({ receivedAt }) => receivedAt),
    fingerprints: ids.map(({ fingerprint }) => fingerprint),
  };
}

/** @param ids at least one */
export function rejectionPayloadsStatement(ids: readonly RejectionId[]): Statement {
  return {
    name: 'read_rejection_payloads',
    query: `
SELECT DISTINCT
  toUnixTimestamp64Milli(received_at) AS received_ms,
  ${FINGERPRINT} AS fingerprint,
  payload
FROM rejected_events
WHERE ${HAS_ID}`,
    query_params: idParameters(ids),
  };
}

const payloadRow = z.object({ received_ms: z.string(), fingerprint: z.string(), payload: z.string() });

/** @returns the payload of each, in their order; undefined for one that somebody else has settled meanwhile */
export async function readRejectionPayloads(
  warehouse: Warehouse,
  ids: readonly RejectionId[],
): Promise<(string | undefined)[]> {
  if (ids.length === 0) return [];
  const rows = await warehouse.read(rejectionPayloadsStatement(ids), payloadRow);
  const payloads = new Map(rows.map((row) => [`${row.received_ms} ${row.fingerprint}`, row.payload]));
  return ids.map(({ receivedAt, fingerprint }) => payloads.get(`${receivedAt} ${fingerprint}`));
}

/** How an operator has settled a refusal. */
export type SettlementOutcome = 'replayed' | 'discarded';

/** @param ids at least one */
export function deleteRejectionsStatement(ids: readonly RejectionId[]): Statement {
  return {
    name: 'delete_rejections',
    // A lightweight delete, not ALTER TABLE … DELETE: that one would rewrite every part for a few rows.
    query: `
DELETE FROM rejected_events
WHERE ${HAS_ID}`,
    query_params: idParameters(ids),
  };
}

/**
 * Settles refusals for good and deletes their rows. First the record, then the rows: a crash in between leaves rows
 * that readers leave out already, and a redelivered job that writes its rows again does not bring them back.
 * Settling one again changes nothing.
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
  for (const shard of all) await shard.run(deleteRejectionsStatement(ids));
}

function openConditions(filter: RejectionFilter): string[] {
  const wanted = conditions(filter);
  // Narrowed to the same times, because every settled refusal that it reads is held in memory.
  const times = conditions({ from: filter.from, to: filter.to });
  const settled = `SELECT received_at, fingerprint FROM settled_rejections${times.length > 0 ? ` WHERE ${times.join(' AND ')}` : ''}`;
  return [...wanted, `(received_at, ${FINGERPRINT}) NOT IN (${settled})`];
}

function conditions(filter: RejectionFilter): string[] {
  return Object.entries(CONDITIONS).flatMap(([name, condition]) => (name in parameters(filter) ? [condition] : []));
}

function parameters({ fingerprint, ...others }: RejectionFilter): Record<string, Parameter> {
  const all = { ...others, fingerprint: fingerprint?.toString() };
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
