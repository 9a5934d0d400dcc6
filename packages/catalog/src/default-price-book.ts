/**
 * The example price book that applies when PRICE_BOOK names no other. Source: DESIGN section 3.
 * A GB-month is 730 hours, that is 2,628,000 GB-seconds; `per` keeps such prices exact.
 */
import { PriceBook, type PriceBookFile } from './price-book.js';

const EFFECTIVE_FROM = '1970-01-01T00:00:00Z';
const GB_MONTH = '2628000';

export const DEFAULT_PRICE_BOOK_FILE = {
  version: 0,
  currency: 'USD',
  prices: [
    { billingDimension: 'sandbox_compute_runtime_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.0000115', per: '1' },
    { billingDimension: 'sandbox_image_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.045', per: GB_MONTH },
    { billingDimension: 'sandbox_snapshot_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.20', per: GB_MONTH },
    { billingDimension: 'agent_compute_runtime_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.0000115', per: '1' },
    { billingDimension: 'agent_image_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.045', per: GB_MONTH },
    { billingDimension: 'agent_async_requests_count', effectiveFrom: EFFECTIVE_FROM, amount: '0.20', per: '1000000' },
    { billingDimension: 'job_compute_runtime_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.000006', per: '1' },
    { billingDimension: 'job_image_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.045', per: GB_MONTH },
    { billingDimension: 'mcp_server_compute_runtime_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.000007', per: '1' },
    { billingDimension: 'mcp_server_image_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.045', per: GB_MONTH },
    { billingDimension: 'volume_storage_gbs', effectiveFrom: EFFECTIVE_FROM, amount: '0.12', per: GB_MONTH },
    { billingDimension: 'custom_domain_active_time_hours', effectiveFrom: EFFECTIVE_FROM, amount: '20', per: '730' },
  ],
} as const satisfies PriceBookFile;

export const DEFAULT_PRICE_BOOK = new PriceBook(DEFAULT_PRICE_BOOK_FILE);
