import type { Statement, Warehouse } from '../clickhouse/connection.js';
import { insertRows } from '../clickhouse/insert.js';
import { HAS_ID, idParameters, type RejectionId } from './rejections.js';

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
  warehouse: Warehouse,
  ids: readonly RejectionId[],
  outcome: SettlementOutcome,
): Promise<void> {
  if (ids.length === 0) return;
  const settled = ids.map(({ receivedAt, fingerprint }) => ({
    received_at: new Date(receivedAt).toISOString().slice(0, -1),
    fingerprint: String(fingerprint),
    outcome,
  }));
  await insertRows(warehouse, 'settled_rejections', settled);
  await warehouse.run(deleteRejectionsStatement(ids));
}
