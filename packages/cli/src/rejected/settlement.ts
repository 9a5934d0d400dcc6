/** Settling many refusals, group by group. */
import type { OpenRejection, Warehouse } from '@meterline/warehouse';
import { settlementGroups } from './groups.js';
import { formatRejectionId } from './rejection-id.js';
import { type RejectionSelection, selectedPages } from './selection.js';
import { IN_USE, isReferredTo } from './whole-jobs.js';

const PAGE_SIZE = 2_000;

/** One that stays as it is, and why. */
export interface KeptRejection {
  readonly id: string;
  readonly why: string;
}

export interface Settlement {
  readonly warehouse: Warehouse;
  readonly selection: RejectionSelection;
  readonly signal: AbortSignal;
  /** A rehearsal settles nothing, so it cannot see who would still be referred to. */
  readonly dryRun?: boolean | undefined;
  readonly onKept: (kept: KeptRejection) => void;
  /** Settles a group as far as it can be. */
  readonly settle: (group: readonly OpenRejection[]) => Promise<void>;
}

/** Ends between two groups when it is interrupted. */
export async function settleSelected({
  warehouse,
  selection,
  signal,
  dryRun,
  onKept,
  settle,
}: Settlement): Promise<void> {
  for await (const page of selectedPages(warehouse, selection, PAGE_SIZE)) {
    for (const group of settlementGroups(page)) {
      if (signal.aborted) return;
      const [first] = group;
      // Only the first of a group can be one that others refer to.
      const isHeld = !dryRun && first !== undefined && (await isReferredTo(warehouse, first));
      if (isHeld) onKept({ id: formatRejectionId(first), why: IN_USE });
      await settle(isHeld ? group.slice(1) : group);
    }
  }
}
