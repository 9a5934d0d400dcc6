import type { UsageEvent } from '@meterline/catalog';
import type { Warehouse } from '../clickhouse/connection.js';
import { insertBlock, type PreparedInsert, prepareInsert, type Table } from '../clickhouse/insert.js';

/** An event with its price applied: a row of usage_events. */
export interface PricedEvent extends UsageEvent {
  /** USD, scaled by 10^12. */
  readonly cost: bigint;
  /** Raised by re-pricing; 0 at ingest. */
  readonly priceRevision: number;
  /** Version of the price book that the cost comes from. */
  readonly priceBook: number;
}

export const USAGE_EVENTS: Table<PricedEvent> = {
  name: 'usage_events',
  bytesPerRow: 160,
  columns: [
    { name: 'account_id', type: 'String', write: (out, row) => out.string(row.accountId) },
    { name: 'event_id', type: 'UUID', write: (out, row) => out.uuid(row.eventId) },
    { name: 'timestamp', type: "DateTime64(3, 'UTC')", write: (out, row) => out.int64(row.timestamp) },
    { name: 'workspace', type: 'String', write: (out, row) => out.string(row.workspace) },
    { name: 'resource_type', type: 'String', write: (out, row) => out.string(row.resourceType) },
    { name: 'resource_name', type: 'String', write: (out, row) => out.string(row.resourceName) },
    { name: 'resource_uuid', type: 'String', write: (out, row) => out.string(row.resourceUuid) },
    { name: 'billing_dimension', type: 'String', write: (out, row) => out.string(row.billingDimension) },
    { name: 'usage', type: 'Decimal(38, 9)', write: (out, row) => out.int128(row.usage) },
    { name: 'revision', type: 'UInt16', write: (out, row) => out.uint16(row.revision) },
    { name: 'voided', type: 'Bool', write: (out, row) => out.uint8(row.voided ? 1 : 0) },
    { name: 'cost', type: 'Decimal(38, 12)', write: (out, row) => out.int128(row.cost) },
    { name: 'price_revision', type: 'UInt16', write: (out, row) => out.uint16(row.priceRevision) },
    { name: 'price_book', type: 'UInt16', write: (out, row) => out.uint16(row.priceBook) },
  ],
};

/** Stores events; storing one again changes nothing. See {@link PreparedInsert} for what success and failure mean. */
export function insertUsageEvents(warehouse: Warehouse, events: readonly PricedEvent[]): Promise<void> {
  return insertBlock(warehouse, USAGE_EVENTS, events);
}

/** The same in two steps, to repeat the second: see {@link prepareInsert}. */
export function prepareUsageEvents(events: readonly PricedEvent[]): PreparedInsert {
  return prepareInsert(USAGE_EVENTS, events);
}
