/** What ingest has refused: events and whole jobs with the reason, and the data of jobs that are too large to be read. */
import type { EpochMs, RejectionReason } from '@meterline/catalog';
import { z } from 'zod';
import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { type PreparedInsert, prepareInsert, type Table } from '../clickhouse/insert.js';

/** A row of rejected_events. */
export interface RejectedEvent {
  /** When the queue took the job. */
  readonly receivedAt: EpochMs;
  readonly jobId: string;
  /** Index of the event in its job; 0 for a job that was refused whole. */
  readonly position: number;
  /** As the event claims; empty when that cannot be read. */
  readonly accountId: string;
  readonly reason: RejectionReason;
  readonly message: string;
  /** JSON. */
  readonly payload: string;
}

export const REJECTED_EVENTS: Table<RejectedEvent> = {
  name: 'rejected_events',
  bytesPerRow: 1024,
  columns: [
    { name: 'received_at', type: "DateTime64(3, 'UTC')", write: (out, row) => out.int64(row.receivedAt) },
    { name: 'job_id', type: 'String', write: (out, row) => out.string(row.jobId) },
    { name: 'position', type: 'UInt32', write: (out, row) => out.uint32(row.position) },
    { name: 'account_id', type: 'String', write: (out, row) => out.string(row.accountId) },
    { name: 'reason', type: 'String', write: (out, row) => out.string(row.reason) },
    { name: 'message', type: 'String', write: (out, row) => out.string(row.message) },
    { name: 'payload', type: 'String', write: (out, row) => out.string(row.payload) },
  ],
};

/** Keeps refused events; keeping one again replaces it. See {@link PreparedInsert} for what success and failure mean. */
export function prepareRejectedEvents(events: readonly RejectedEvent[]): PreparedInsert {
  return prepareInsert(REJECTED_EVENTS, events);
}

/** The data of a job that was too large to be read. */
export interface RejectedPayload {
  /** When the queue took the job. */
  readonly receivedAt: EpochMs;
  readonly jobId: string;
  /** Of all its parts together, in hexadecimal. */
  readonly sha256: string;
}

/** A row of rejected_payloads. */
export interface PayloadPart extends RejectedPayload {
  /** From 0 on. */
  readonly part: number;
  readonly content: Uint8Array;
}

const BYTES_BESIDE_CONTENT = 256;

/** Keeps a part; keeping it again replaces it. See {@link PreparedInsert} for what success and failure mean. */
export function preparePayloadPart(payloadPart: PayloadPart): PreparedInsert {
  const table: Table<PayloadPart> = {
    name: 'rejected_payloads',
    bytesPerRow: BYTES_BESIDE_CONTENT + payloadPart.content.length,
    columns: [
      { name: 'received_at', type: "DateTime64(3, 'UTC')", write: (out, row) => out.int64(row.receivedAt) },
      { name: 'job_id', type: 'String', write: (out, row) => out.string(row.jobId) },
      { name: 'sha256', type: 'String', write: (out, row) => out.string(row.sha256) },
      { name: 'part', type: 'UInt32', write: (out, row) => out.uint32(row.part) },
      { name: 'content', type: 'String', write: (out, row) => out.blob(row.content) },
    ],
  };
  return prepareInsert(table, [payloadPart]);
}

const IS_PAYLOAD = `received_at = fromUnixTimestamp64Milli({receivedAt: Int64}, 'UTC')
  AND job_id = {jobId: String}
  AND sha256 = {sha256: String}`;

function payloadPartStatement({ receivedAt, jobId, sha256 }: RejectedPayload, part: number): Statement {
  return {
    name: 'read_payload_part',
    // In base64, because a part may begin or end within a character.
    query: `
SELECT base64Encode(content) AS content
FROM rejected_payloads
WHERE ${IS_PAYLOAD}
  AND part = {part: UInt32}
LIMIT 1`,
    query_params: { receivedAt, jobId, sha256, part },
  };
}

/** All its parts in their order, one at a time; none when it has been settled. */
export async function* readPayloadParts(warehouse: Warehouse, payload: RejectedPayload): AsyncGenerator<Buffer> {
  const row = z.object({ content: z.string() });
  for (let part = 0; ; part += 1) {
    const [found] = await warehouse.read(payloadPartStatement(payload, part), row);
    if (!found) return;
    yield Buffer.from(found.content, 'base64');
  }
}

function deletePayloadStatement({ receivedAt, jobId, sha256 }: RejectedPayload): Statement {
  return {
    name: 'delete_rejected_payload',
    query: `
DELETE FROM rejected_payloads
WHERE ${IS_PAYLOAD}`,
    query_params: { receivedAt, jobId, sha256 },
  };
}

/** Deletes all its parts for good; deleting them again changes nothing. */
export async function deleteRejectedPayload(warehouse: Warehouse, payload: RejectedPayload): Promise<void> {
  await warehouse.run(deletePayloadStatement(payload));
}
