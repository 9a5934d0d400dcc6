/** The caller's accounts, sorted and cut into pages. Source: the API specification, section "Limits". */
import type { Account, Role } from '@meterline/access';
import type { AccountSort } from '@meterline/catalog/api';
import { z } from 'zod';

export interface AccountEntry extends Account {
  readonly role: Role;
}

/** An account's place in a sorted list. */
export const accountPosition = z.object({ key: z.string(), id: z.string() });
export type AccountPosition = z.output<typeof accountPosition>;

export function positionOf(account: AccountEntry, sort: AccountSort): AccountPosition {
  return { key: sort.startsWith('name') ? account.name : account.createdAt, id: account.id };
}

/** Sorted by the asked key, in its direction, then by id. */
export function sortAccounts(accounts: readonly AccountEntry[], sort: AccountSort): AccountEntry[] {
  return [...accounts].sort((a, b) => comparePositions(positionOf(a, sort), positionOf(b, sort), sort));
}

/** The accounts that follow a position in a sorted list; all of them without one. */
export function accountsAfter(
  sorted: readonly AccountEntry[],
  position: AccountPosition | undefined,
  sort: AccountSort,
): readonly AccountEntry[] {
  if (!position) return sorted;
  return sorted.filter((account) => comparePositions(positionOf(account, sort), position, sort) > 0);
}

function comparePositions(a: AccountPosition, b: AccountPosition, sort: AccountSort): number {
  const byKey = compareText(a.key, b.key);
  return (sort.endsWith(':desc') ? -byKey : byKey) || compareText(a.id, b.id);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
