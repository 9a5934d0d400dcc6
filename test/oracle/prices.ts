/** The dimensions of the specification with the prices of DESIGN section 3, and what a usage costs under a price book. */
import { instantOf } from './calendar.js';
import { decimalOf, type Fraction, roundHalfEven } from './exact.js';

export const COST_DECIMALS = 12;
export const USAGE_DECIMALS = 9;

interface OracleDimension {
  readonly resourceType: string;
  readonly counts: boolean;
  readonly amount: string;
  readonly per: string;
}

/** A GB-month is 730 hours: 2,628,000 GB-seconds. */
export const DIMENSIONS: Readonly<Record<string, OracleDimension>> = {
  sandbox_compute_runtime_gbs: { resourceType: 'sandbox', counts: false, amount: '0.0000115', per: '1' },
  sandbox_image_storage_gbs: { resourceType: 'sandbox', counts: false, amount: '0.045', per: '2628000' },
  sandbox_snapshot_storage_gbs: { resourceType: 'sandbox', counts: false, amount: '0.20', per: '2628000' },
  agent_compute_runtime_gbs: { resourceType: 'agent', counts: false, amount: '0.0000115', per: '1' },
  agent_image_storage_gbs: { resourceType: 'agent', counts: false, amount: '0.045', per: '2628000' },
  agent_async_requests_count: { resourceType: 'agent', counts: true, amount: '0.20', per: '1000000' },
  job_compute_runtime_gbs: { resourceType: 'job', counts: false, amount: '0.000006', per: '1' },
  job_image_storage_gbs: { resourceType: 'job', counts: false, amount: '0.045', per: '2628000' },
  mcp_server_compute_runtime_gbs: { resourceType: 'mcp_server', counts: false, amount: '0.000007', per: '1' },
  mcp_server_image_storage_gbs: { resourceType: 'mcp_server', counts: false, amount: '0.045', per: '2628000' },
  volume_storage_gbs: { resourceType: 'volume', counts: false, amount: '0.12', per: '2628000' },
  custom_domain_active_time_hours: { resourceType: 'custom_domain', counts: false, amount: '20', per: '730' },
};

export const RESOURCE_TYPES = ['sandbox', 'agent', 'job', 'mcp_server', 'volume', 'custom_domain'];

interface OraclePrice {
  readonly billingDimension: string;
  readonly effectiveFrom: string;
  readonly amount: string;
  readonly per?: string;
}

/** The content of the file that PRICE_BOOK names. */
export interface OraclePriceBook {
  readonly version: number;
  readonly currency: 'USD';
  readonly prices: readonly OraclePrice[];
  readonly overrides?: readonly (OraclePrice & { readonly accountId: string })[];
}

/** The price book that applies when PRICE_BOOK is not set. */
export const EXAMPLE_BOOK: OraclePriceBook = {
  version: 0,
  currency: 'USD',
  prices: Object.entries(DIMENSIONS).map(([billingDimension, { amount, per }]) => ({
    billingDimension,
    effectiveFrom: '1970-01-01T00:00:00Z',
    amount,
    per,
  })),
};

/** USD × 10^12 for usage × 10^9; undefined before the dimension's first price. */
export function costUnder(
  book: OraclePriceBook,
  used: { accountId: string; billingDimension: string; timestamp: number; usage: bigint },
): bigint | undefined {
  const own = (book.overrides ?? []).filter(({ accountId }) => accountId === used.accountId);
  const price = latestPrice(own, used) ?? latestPrice(book.prices, used);
  if (!price) return undefined;
  const amount = mustBeDecimal(price.amount);
  const per = mustBeDecimal(price.per ?? '1');
  const cost = {
    numerator: used.usage * amount.numerator * per.denominator,
    denominator: 10n ** BigInt(USAGE_DECIMALS) * amount.denominator * per.numerator,
  };
  return roundHalfEven(cost, COST_DECIMALS);
}

function latestPrice(prices: readonly OraclePrice[], used: { billingDimension: string; timestamp: number }) {
  return prices
    .map((price) => ({ ...price, from: instantOf(price.effectiveFrom) ?? Number.NaN }))
    .filter(({ billingDimension, from }) => billingDimension === used.billingDimension && from <= used.timestamp)
    .sort((a, b) => b.from - a.from)[0];
}

function mustBeDecimal(text: string): Fraction {
  const decimal = decimalOf(text);
  if (!decimal) throw new Error(`${text} is not a decimal`);
  return decimal;
}

const REPLACED: readonly OraclePrice[] = [
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

const ADDED: readonly OraclePrice[] = [
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

const OVERRIDES: readonly OraclePrice[] = [
  { billingDimension: 'sandbox_compute_runtime_gbs', effectiveFrom: '2020-12-28T00:00:00Z', amount: '1', per: '7' },
  { billingDimension: 'sandbox_compute_runtime_gbs', effectiveFrom: '2025-01-01T00:00:00Z', amount: '999999.5' },
  { billingDimension: 'agent_async_requests_count', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0' },
];

/** A price book with all the special cases: ties, free usage, late first prices, changes within an hour. @param accounts with their own prices */
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
