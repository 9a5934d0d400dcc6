import { expect, it } from '@jest/globals';
import { decimalText } from '@meterline/catalog/plain';
import { FOCUS_COLUMNS, type FocusCharge, focusCsvHeading, focusCsvLines } from './charges.js';

const [COST, USAGE] = [decimalText('0.000000000001'), decimalText('999999999999999.999999999')];
const [OCTOBER, NOVEMBER] = [Date.UTC(2025, 9), Date.UTC(2025, 10)];
const CHARGE: FocusCharge = {
  ...{ BilledCost: COST, ContractedCost: COST, EffectiveCost: COST, ListCost: COST },
  ...{ BillingAccountId: 'acme', BillingAccountName: 'Acme\r\n"West"\n', BillingCurrency: 'USD' },
  ...{ BillingPeriodStart: OCTOBER, BillingPeriodEnd: NOVEMBER },
  ...{ ChargeCategory: 'Usage', ChargeClass: null, ChargeDescription: ' blank at both ends ' },
  ...{ ChargeFrequency: 'Usage-Based', ChargePeriodStart: OCTOBER, ChargePeriodEnd: Date.UTC(2025, 9, 2) },
  ...{ ConsumedQuantity: USAGE, PricingQuantity: USAGE, ConsumedUnit: 'GB-Seconds', PricingUnit: 'GB-Seconds' },
  ...{ InvoiceId: null, InvoiceIssuerName: 'Us, Inc', ProviderName: 'Us, Inc', PublisherName: 'Us, Inc' },
  ...{ ResourceId: 'acme/agent/x', ResourceName: '=1+1', ResourceType: 'Agent' },
  ...{ ServiceCategory: 'AI and Machine Learning', ServiceName: 'Agents', ServiceSubcategory: 'AI Platforms' },
  ...{ SkuId: 'agent_compute_runtime_gbs', SkuPriceId: 'agent_compute_runtime_gbs', SkuPriceDetails: null },
  ...{ SkuMeter: 'Compute Runtime', SubAccountId: null, SubAccountName: null },
};

it('a CSV line quotes special characters, keeps names unchanged, and leaves null fields empty', () => {
  const cells = [
    ...['0.000000000001', 'acme', '"Acme\r\n""West""\n"', 'USD', '2025-11-01T00:00:00Z', '2025-10-01T00:00:00Z'],
    ...['Usage', '', '" blank at both ends "', 'Usage-Based', '2025-10-02T00:00:00Z', '2025-10-01T00:00:00Z'],
    ...['999999999999999.999999999', 'GB-Seconds', '0.000000000001', '0.000000000001', '', '"Us, Inc"'],
    ...['0.000000000001', '999999999999999.999999999', 'GB-Seconds', '"Us, Inc"', '"Us, Inc"', 'acme/agent/x', '=1+1'],
    ...['Agent', 'AI and Machine Learning', 'Agents', 'AI Platforms', 'agent_compute_runtime_gbs', 'Compute Runtime'],
    ...['', 'agent_compute_runtime_gbs', '', ''],
  ];
  expect(cells).toHaveLength(FOCUS_COLUMNS.length);
  expect(focusCsvLines([CHARGE])).toBe(`${cells.join(',')}\r\n`);
  expect(focusCsvHeading().split(',')).toHaveLength(FOCUS_COLUMNS.length);
});
