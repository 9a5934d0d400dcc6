import type { EpochMs, RejectionReason } from '@meterline/catalog';
import type { Warehouse } from '../clickhouse/connection.js';
import { insertBlock, type PreparedInsert, prepareInsert, type Table } from '../clickhouse/insert.js';

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

/** Keeps refused events; keeping one again replaces it. See {@link insertBlock} for what success and failure mean. */
export function insertRejectedEvents(warehouse: Warehouse, events: readonly RejectedEvent[]): Promise<void> {
  return insertBlock(warehouse, REJECTED_EVENTS, events);
}

/** The same in two steps, to repeat the second: see {@link prepareInsert}. */
export function prepareRejectedEvents(events: readonly RejectedEvent[]): PreparedInsert {
  return prepareInsert(REJECTED_EVENTS, events);
}
