import { describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK } from './default-price-book.js';
import { BILLING_DIMENSIONS } from './dimensions.js';

describe('the default price book', () => {
  it('has the example prices of the design, in force from 1970', () => {
    const prices = BILLING_DIMENSIONS.map((dimension) => {
      const price = DEFAULT_PRICE_BOOK.priceAt('any', dimension, 0);
      return [dimension, price?.amount, price?.per];
    });
    expect(prices).toEqual([
      ['sandbox_compute_runtime_gbs', '0.0000115', '1'],
      ['sandbox_image_storage_gbs', '0.045', '2628000'],
      ['sandbox_snapshot_storage_gbs', '0.20', '2628000'],
      ['agent_compute_runtime_gbs', '0.0000115', '1'],
      ['agent_image_storage_gbs', '0.045', '2628000'],
      ['agent_async_requests_count', '0.20', '1000000'],
      ['job_compute_runtime_gbs', '0.000006', '1'],
      ['job_image_storage_gbs', '0.045', '2628000'],
      ['mcp_server_compute_runtime_gbs', '0.000007', '1'],
      ['mcp_server_image_storage_gbs', '0.045', '2628000'],
      ['volume_storage_gbs', '0.12', '2628000'],
      ['custom_domain_active_time_hours', '20', '730'],
    ]);
  });

  it('is the oldest book there can be', () => {
    expect(DEFAULT_PRICE_BOOK.version).toBe(0);
  });
});
