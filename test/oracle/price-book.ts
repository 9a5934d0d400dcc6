/** A price book with all the special cases: ties, free usage, late first prices, changes within an hour. */
import { EXAMPLE_BOOK, type OraclePriceBook } from './model.js';

const REPLACED: OraclePriceBook['prices'] = [
  // Usage has nine decimals, so the cost has thirteen, and the last is 0 or 5.
  { billingDimension: 'agent_compute_runtime_gbs', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0.0005' },
  { billingDimension: 'volume_storage_gbs', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0.0015', per: '1.0' },
  { billingDimension: 'job_compute_runtime_gbs', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0.1', per: '3' },
  { billingDimension: 'mcp_server_image_storage_gbs', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0' },
  // Older events are refused.
  {
    billingDimension: 'custom_domain_active_time_hours',
    effectiveFrom: '2000-02-29T00:00:00Z',
    amount: '20',
    per: '730',
  },
];

const ADDED: OraclePriceBook['prices'] = [
  {
    billingDimension: 'sandbox_compute_runtime_gbs',
    effectiveFrom: '2024-02-29T12:30:00.500Z',
    amount: '0.000012345678901234',
    per: '0.7',
  },
  {
    billingDimension: 'agent_async_requests_count',
    effectiveFrom: '2025-01-01T00:00:00Z',
    amount: '0.25',
    per: '1000000',
  },
];

const OVERRIDES: OraclePriceBook['prices'] = [
  { billingDimension: 'sandbox_compute_runtime_gbs', effectiveFrom: '2020-12-28T00:00:00Z', amount: '1', per: '7' },
  { billingDimension: 'sandbox_compute_runtime_gbs', effectiveFrom: '2025-01-01T00:00:00Z', amount: '999999.5' },
  { billingDimension: 'agent_async_requests_count', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0' },
];

/** @param accounts the accounts with their own prices */
export function trickyBook(accounts: readonly string[]): OraclePriceBook {
  const kept = EXAMPLE_BOOK.prices.filter(
    ({ billingDimension }) => !REPLACED.some((price) => price.billingDimension === billingDimension),
  );
  return {
    version: 1,
    currency: 'USD',
    prices: [...kept, ...REPLACED, ...ADDED],
    overrides: accounts.flatMap((accountId) => OVERRIDES.map((price) => ({ ...price, accountId }))),
  };
}
