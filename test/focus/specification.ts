/**
 * The columns of FOCUS 1.2 as a table: level, type, nullability, allowed values. Every column of the specification is here; one
 * that the export does not have says why.
 * Source: FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec at tag v1.2, specification/columns, "Content constraints".
 */

export interface SpecifiedColumn {
  readonly name: string;
  readonly level: 'Mandatory' | 'Conditional' | 'Recommended';
  readonly type: 'String' | 'Decimal' | 'Date/Time' | 'JSON';
  readonly nulls: boolean;
  readonly allowed?: readonly string[];
  /** Why the condition does not hold for Meterline, or why a recommendation is not followed. */
  readonly absent?: string;
}

const NO_COMMITMENTS = 'there are no commitment discounts';
const NO_RESERVATIONS = 'there are no capacity reservations';
const NO_CURRENCIES = 'prices and costs are in USD';
const NO_REGIONS = 'an event has no region';
const NO_UNIT_PRICE = 'a row may hold events of several prices, each rounded for itself: decision 0029';

const SERVICE_CATEGORIES = [
  ...['AI and Machine Learning', 'Analytics', 'Business Applications', 'Compute', 'Databases', 'Developer Tools'],
  ...['Multicloud', 'Identity', 'Integration', 'Internet of Things', 'Management and Governance', 'Media'],
  ...['Migration', 'Mobile', 'Networking', 'Security', 'Storage', 'Web', 'Other'],
];

type Row = readonly [
  name: string,
  level: SpecifiedColumn['level'],
  type: SpecifiedColumn['type'],
  nulls: boolean,
  more?: Pick<SpecifiedColumn, 'allowed' | 'absent'>,
];

const ROWS: readonly Row[] = [
  ['AvailabilityZone', 'Recommended', 'String', true, { absent: NO_REGIONS }],
  ['BilledCost', 'Mandatory', 'Decimal', false],
  ['BillingAccountId', 'Mandatory', 'String', false],
  ['BillingAccountName', 'Mandatory', 'String', true],
  ['BillingAccountType', 'Conditional', 'String', false, { absent: 'there is one type' }],
  ['BillingCurrency', 'Mandatory', 'String', false, { allowed: ['USD'] }],
  ['BillingPeriodEnd', 'Mandatory', 'Date/Time', false],
  ['BillingPeriodStart', 'Mandatory', 'Date/Time', false],
  ['CapacityReservationId', 'Conditional', 'String', true, { absent: NO_RESERVATIONS }],
  ['CapacityReservationStatus', 'Conditional', 'String', true, { absent: NO_RESERVATIONS }],
  ['ChargeCategory', 'Mandatory', 'String', false, { allowed: ['Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'] }],
  ['ChargeClass', 'Mandatory', 'String', true, { allowed: ['Correction'] }],
  ['ChargeDescription', 'Mandatory', 'String', true],
  ['ChargeFrequency', 'Recommended', 'String', false, { allowed: ['One-Time', 'Recurring', 'Usage-Based'] }],
  ['ChargePeriodEnd', 'Mandatory', 'Date/Time', false],
  ['ChargePeriodStart', 'Mandatory', 'Date/Time', false],
  ['CommitmentDiscountCategory', 'Conditional', 'String', true, { absent: NO_COMMITMENTS }],
  ['CommitmentDiscountId', 'Conditional', 'String', true, { absent: NO_COMMITMENTS }],
  ['CommitmentDiscountName', 'Conditional', 'String', true, { absent: NO_COMMITMENTS }],
  ['CommitmentDiscountQuantity', 'Conditional', 'Decimal', true, { absent: NO_COMMITMENTS }],
  ['CommitmentDiscountStatus', 'Conditional', 'String', true, { absent: NO_COMMITMENTS }],
  ['CommitmentDiscountType', 'Conditional', 'String', true, { absent: NO_COMMITMENTS }],
  ['CommitmentDiscountUnit', 'Conditional', 'String', true, { absent: NO_COMMITMENTS }],
  ['ConsumedQuantity', 'Conditional', 'Decimal', true],
  ['ConsumedUnit', 'Conditional', 'String', true],
  ['ContractedCost', 'Mandatory', 'Decimal', false],
  ['ContractedUnitPrice', 'Conditional', 'Decimal', true, { absent: NO_UNIT_PRICE }],
  ['EffectiveCost', 'Mandatory', 'Decimal', false],
  ['InvoiceId', 'Recommended', 'String', true],
  ['InvoiceIssuerName', 'Mandatory', 'String', false],
  ['ListCost', 'Mandatory', 'Decimal', false],
  ['ListUnitPrice', 'Conditional', 'Decimal', true, { absent: NO_UNIT_PRICE }],
  ['PricingCategory', 'Conditional', 'String', true, { absent: 'there is one: Standard' }],
  ['PricingCurrency', 'Conditional', 'String', true, { absent: NO_CURRENCIES }],
  ['PricingCurrencyContractedUnitPrice', 'Conditional', 'Decimal', true, { absent: NO_CURRENCIES }],
  ['PricingCurrencyEffectiveCost', 'Conditional', 'Decimal', true, { absent: NO_CURRENCIES }],
  ['PricingCurrencyListUnitPrice', 'Conditional', 'Decimal', true, { absent: NO_CURRENCIES }],
  ['PricingQuantity', 'Mandatory', 'Decimal', true],
  ['PricingUnit', 'Mandatory', 'String', true],
  ['ProviderName', 'Mandatory', 'String', false],
  ['PublisherName', 'Mandatory', 'String', false],
  ['RegionId', 'Conditional', 'String', true, { absent: NO_REGIONS }],
  ['RegionName', 'Conditional', 'String', true, { absent: NO_REGIONS }],
  ['ResourceId', 'Conditional', 'String', true],
  ['ResourceName', 'Conditional', 'String', true],
  ['ResourceType', 'Conditional', 'String', true],
  ['ServiceCategory', 'Mandatory', 'String', false, { allowed: SERVICE_CATEGORIES }],
  ['ServiceName', 'Mandatory', 'String', false],
  ['ServiceSubcategory', 'Recommended', 'String', false],
  ['SkuId', 'Conditional', 'String', true],
  ['SkuMeter', 'Conditional', 'String', true],
  ['SkuPriceDetails', 'Conditional', 'JSON', true],
  ['SkuPriceId', 'Conditional', 'String', true],
  ['SubAccountId', 'Conditional', 'String', true],
  ['SubAccountName', 'Conditional', 'String', true],
  ['SubAccountType', 'Conditional', 'String', true, { absent: 'there is one type' }],
  ['Tags', 'Conditional', 'JSON', true, { absent: 'an event has no tags' }],
];

export const SPECIFICATION = ROWS.map(
  ([name, level, type, nulls, more]): SpecifiedColumn => ({ name, level, type, nulls, ...more }),
);

/** Of the categories that the export uses. */
export const SUBCATEGORIES: Readonly<Record<string, readonly string[]>> = {
  'AI and Machine Learning': [
    ...['AI Platforms', 'Bots', 'Generative AI', 'Machine Learning', 'Natural Language Processing'],
    'Other (AI and Machine Learning)',
  ],
  Compute: [
    ...['Containers', 'End User Computing', 'Quantum Compute', 'Serverless Compute', 'Virtual Machines'],
    'Other (Compute)',
  ],
  Networking: [
    ...['Application Networking', 'Content Delivery', 'Network Connectivity', 'Network Infrastructure'],
    ...['Network Routing', 'Network Security', 'Other (Networking)'],
  ],
  Storage: [
    ...['Backup Storage', 'Block Storage', 'File Storage', 'Object Storage', 'Storage Platforms', 'Other (Storage)'],
  ],
};
