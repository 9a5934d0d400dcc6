/** The largest answer that there is: 130 years of months, for as many resources as a page takes. */
import { fillUsage } from '../many-groups.js';
import type { AttackSite } from './site.js';

/** @returns the question for it, of an account that only the caller uses */
export async function largeAnswer(site: AttackSite, account: string): Promise<string> {
  const start = Date.UTC(2025, 9, 1) / 1000;
  await fillUsage(site.warehouse, { account, start, days: 30, groups: 1_000, events: 10_000 });
  const window = 'startTime=1970-01-01T00:00:00Z&endTime=2100-01-01T00:00:00Z&resolution=monthly';
  return `/v0/accounts/${account}/metrics?${window}&groupBy=resource_uuid&limit=1000`;
}
