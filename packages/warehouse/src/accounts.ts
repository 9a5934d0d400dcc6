/** Builds the SQL conditions that select accounts, and finds the accounts that have usage. */
import { z } from 'zod';
import { readBounds } from './bounds.js';
import type { StatementParameters, Warehouse } from './clickhouse/connection.js';

/** The accounts that a statement reads. A list has no duplicates. If it has one account, a cluster reads only that account's shard. */
export type Accounts = readonly string[] | 'all';

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

/** Finds accounts in the daily rollup rows (stored sums), and in events that these rows may lack. The time grows with the number of these rows. */
export async function readAccountsWithUsage(warehouse: Warehouse): Promise<string[]> {
  const { daily } = await readBounds(warehouse);
  const statement = {
    name: 'read_accounts',
    query: `
SELECT account_id FROM usage_daily GROUP BY account_id
UNION DISTINCT
SELECT account_id FROM usage_events WHERE event_hour >= toDateTime({sealed_until: UInt32}, 'UTC') GROUP BY account_id
UNION DISTINCT
SELECT account_id FROM dirty_hours FINAL`,
    query_params: { sealed_until: daily.sealedUntil / 1000 },
  };
  const rows = await warehouse.read(statement, z.object({ account_id: z.string() }));
  return rows.map(({ account_id }) => account_id);
}
