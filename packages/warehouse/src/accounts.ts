/** Whose events, marks and rollup rows a statement reads. */
import type { StatementParameters } from './clickhouse/connection.js';

/** None of them twice. A cluster answers about one account from its shard alone. */
export type Accounts = readonly string[] | 'all';

/** Undefined for several, or none. */
export function onlyAccount(accounts: Accounts): string | undefined {
  return accounts !== 'all' && accounts.length === 1 ? accounts[0] : undefined;
}

export function accountsCondition(accounts: Accounts): string[] {
  if (accounts === 'all') return [];
  if (accounts.length === 1) return ['account_id = {account_id: String}'];
  return ['account_id IN {accounts: Array(String)}'];
}

export function accountsParameters(accounts: Accounts): StatementParameters {
  if (accounts === 'all') return {};
  const account = onlyAccount(accounts);
  return account === undefined ? { accounts } : { account_id: account };
}
