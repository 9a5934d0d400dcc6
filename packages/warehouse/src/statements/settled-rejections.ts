import type { Warehouse } from '../client.js';
import { observed } from '../observation.js';
import type { Statement } from '../statement.js';
import { HAS_ID, idParameters, type RejectionId } from './rejections.js';

/** How an operator has settled a refusal. */
export type SettlementOutcome = 'replayed' | 'discarded';

/** @param ids at least one */
export function deleteRejectionsStatement(ids: readonly RejectionId[]): Statement {
  return {
    name: 'delete_rejections',
    // A lightweight delete, not ALTER TABLE … DELETE: that one would write every part anew for a few rows.
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
  const values = ids.map(({ receivedAt, fingerprint }) => ({
    received_at: new Date(receivedAt).toISOString().slice(0, -1),
    fingerprint: String(fingerprint),
    outcome,
  }));
  await observed(warehouse, 'insert_settled_rejections', () =>
    warehouse.insert({
      table: 'settled_rejections',
      values,
      format: 'JSONEachRow',
      columns: ['received_at', 'fingerprint', 'outcome'],
    }),
  );
  const { name, query, query_params } = deleteRejectionsStatement(ids);
  await observed(warehouse, name, () => warehouse.command({ query, query_params: { ...query_params } }));
}
