import { describe, expect, it } from '@jest/globals';
import { decimalText } from '@meterline/catalog';
import { commonQuantity, quantityOf, quantityText, unitPriceText } from './quantities.js';

describe('usage as people compare it', () => {
  it.each([
    ['agent_compute_runtime_gbs', '3600', '1 GB-h'],
    ['agent_compute_runtime_gbs', '4444.444', '1.23 GB-h'],
    ['volume_storage_gbs', '1103760000', '420 GB-month'],
    ['volume_storage_gbs', '3', '0.0000011 GB-month'],
    ['agent_async_requests_count', '12345', '12,345 events'],
    ['custom_domain_active_time_hours', '720.5', '720.5 h'],
    ['sandbox_compute_runtime_gbs', '0', '0 GB-h'],
  ] as const)('%s %s is %s', (dimension, usage, text) => {
    expect(quantityText(decimalText(usage), quantityOf(dimension))).toBe(text);
  });

  it.each([
    ['agent_compute_runtime_gbs', '0.0414', '3600', '$0.0414 / GB-h'],
    ['volume_storage_gbs', '50.4', '1103760000', '$0.12 / GB-month'],
    ['agent_async_requests_count', '0.0000014', '7', '$0.20 / 1M events'],
    ['custom_domain_active_time_hours', '20', '730', '$0.0274 / h'],
    ['custom_domain_active_time_hours', '0', '730', '$0.00 / h'],
    ['custom_domain_active_time_hours', '123456', '1', '$123,456.00 / h'],
  ] as const)('%s that cost %s for %s is priced at %s', (dimension, cost, usage, text) => {
    expect(unitPriceText(decimalText(cost), decimalText(usage), quantityOf(dimension))).toBe(text);
  });

  it('has no price where nothing was used', () => {
    expect(unitPriceText(decimalText('0'), decimalText('0'), quantityOf('volume_storage_gbs'))).toBeUndefined();
  });

  it('of several dimensions is in the finer unit, and in none where they differ', () => {
    expect(commonQuantity(['volume_storage_gbs'])?.name).toBe('GB-month');
    expect(commonQuantity(['sandbox_compute_runtime_gbs', 'sandbox_image_storage_gbs'])?.name).toBe('GB-h');
    expect(commonQuantity(['agent_compute_runtime_gbs', 'agent_async_requests_count'])).toBeUndefined();
  });
});
