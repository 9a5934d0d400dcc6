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

export const SPECIFICATION: readonly SpecifiedColumn[] = [
  { name: 'AvailabilityZone', level: 'Recommended', type: 'String', nulls: true, absent: NO_REGIONS },
  { name: 'BilledCost', level: 'Mandatory', type: 'Decimal', nulls: false },
  { name: 'BillingAccountId', level: 'Mandatory', type: 'String', nulls: false },
  { name: 'BillingAccountName', level: 'Mandatory', type: 'String', nulls: true },
  { name: 'BillingAccountType', level: 'Conditional', type: 'String', nulls: false, absent: 'there is one type' },
  { name: 'BillingCurrency', level: 'Mandatory', type: 'String', nulls: false, allowed: ['USD'] },
  { name: 'BillingPeriodEnd', level: 'Mandatory', type: 'Date/Time', nulls: false },
  { name: 'BillingPeriodStart', level: 'Mandatory', type: 'Date/Time', nulls: false },
  { name: 'CapacityReservationId', level: 'Conditional', type: 'String', nulls: true, absent: NO_RESERVATIONS },
  { name: 'CapacityReservationStatus', level: 'Conditional', type: 'String', nulls: true, absent: NO_RESERVATIONS },
  {
    name: 'ChargeCategory',
    level: 'Mandatory',
    type: 'String',
    nulls: false,
    allowed: ['Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'],
  },
  { name: 'ChargeClass', level: 'Mandatory', type: 'String', nulls: true, allowed: ['Correction'] },
  { name: 'ChargeDescription', level: 'Mandatory', type: 'String', nulls: true },
  {
    name: 'ChargeFrequency',
    level: 'Recommended',
    type: 'String',
    nulls: false,
    allowed: ['One-Time', 'Recurring', 'Usage-Based'],
  },
  { name: 'ChargePeriodEnd', level: 'Mandatory', type: 'Date/Time', nulls: false },
  { name: 'ChargePeriodStart', level: 'Mandatory', type: 'Date/Time', nulls: false },
  { name: 'CommitmentDiscountCategory', level: 'Conditional', type: 'String', nulls: true, absent: NO_COMMITMENTS },
  { name: 'CommitmentDiscountId', level: 'Conditional', type: 'String', nulls: true, absent: NO_COMMITMENTS },
  { name: 'CommitmentDiscountName', level: 'Conditional', type: 'String', nulls: true, absent: NO_COMMITMENTS },
  { name: 'CommitmentDiscountQuantity', level: 'Conditional', type: 'Decimal', nulls: true, absent: NO_COMMITMENTS },
  { name: 'CommitmentDiscountStatus', level: 'Conditional', type: 'String', nulls: true, absent: NO_COMMITMENTS },
  { name: 'CommitmentDiscountType', level: 'Conditional', type: 'String', nulls: true, absent: NO_COMMITMENTS },
  { name: 'CommitmentDiscountUnit', level: 'Conditional', type: 'String', nulls: true, absent: NO_COMMITMENTS },
  { name: 'ConsumedQuantity', level: 'Conditional', type: 'Decimal', nulls: true },
  { name: 'ConsumedUnit', level: 'Conditional', type: 'String', nulls: true },
  { name: 'ContractedCost', level: 'Mandatory', type: 'Decimal', nulls: false },
  { name: 'ContractedUnitPrice', level: 'Conditional', type: 'Decimal', nulls: true, absent: NO_UNIT_PRICE },
  { name: 'EffectiveCost', level: 'Mandatory', type: 'Decimal', nulls: false },
  { name: 'InvoiceId', level: 'Recommended', type: 'String', nulls: true },
  { name: 'InvoiceIssuerName', level: 'Mandatory', type: 'String', nulls: false },
  { name: 'ListCost', level: 'Mandatory', type: 'Decimal', nulls: false },
  { name: 'ListUnitPrice', level: 'Conditional', type: 'Decimal', nulls: true, absent: NO_UNIT_PRICE },
  { name: 'PricingCategory', level: 'Conditional', type: 'String', nulls: true, absent: 'there is one: Standard' },
  { name: 'PricingCurrency', level: 'Conditional', type: 'String', nulls: true, absent: NO_CURRENCIES },
  {
    name: 'PricingCurrencyContractedUnitPrice',
    level: 'Conditional',
    type: 'Decimal',
    nulls: true,
    absent: NO_CURRENCIES,
  },
  { name: 'PricingCurrencyEffectiveCost', level: 'Conditional', type: 'Decimal', nulls: true, absent: NO_CURRENCIES },
  { name: 'PricingCurrencyListUnitPrice', level: 'Conditional', type: 'Decimal', nulls: true, absent: NO_CURRENCIES },
  { name: 'PricingQuantity', level: 'Mandatory', type: 'Decimal', nulls: true },
  { name: 'PricingUnit', level: 'Mandatory', type: 'String', nulls: true },
  { name: 'ProviderName', level: 'Mandatory', type: 'String', nulls: false },
  { name: 'PublisherName', level: 'Mandatory', type: 'String', nulls: false },
  { name: 'RegionId', level: 'Conditional', type: 'String', nulls: true, absent: NO_REGIONS },
  { name: 'RegionName', level: 'Conditional', type: 'String', nulls: true, absent: NO_REGIONS },
  { name: 'ResourceId', level: 'Conditional', type: 'String', nulls: true },
  { name: 'ResourceName', level: 'Conditional', type: 'String', nulls: true },
  { name: 'ResourceType', level: 'Conditional', type: 'String', nulls: true },
  {
    name: 'ServiceCategory',
    level: 'Mandatory',
    type: 'String',
    nulls: false,
    allowed: [
      ...['AI and Machine Learning', 'Analytics', 'Business Applications', 'Compute', 'Databases', 'Developer Tools'],
      ...['Multicloud', 'Identity', 'Integration', 'Internet of Things', 'Management and Governance', 'Media'],
      ...['Migration', 'Mobile', 'Networking', 'Security', 'Storage', 'Web', 'Other'],
    ],
  },
  { name: 'ServiceName', level: 'Mandatory', type: 'String', nulls: false },
  { name: 'ServiceSubcategory', level: 'Recommended', type: 'String', nulls: false },
  { name: 'SkuId', level: 'Conditional', type: 'String', nulls: true },
  { name: 'SkuMeter', level: 'Conditional', type: 'String', nulls: true },
  { name: 'SkuPriceDetails', level: 'Conditional', type: 'JSON', nulls: true },
  { name: 'SkuPriceId', level: 'Conditional', type: 'String', nulls: true },
  { name: 'SubAccountId', level: 'Conditional', type: 'String', nulls: true },
  { name: 'SubAccountName', level: 'Conditional', type: 'String', nulls: true },
  { name: 'SubAccountType', level: 'Conditional', type: 'String', nulls: true, absent: 'there is one type' },
  { name: 'Tags', level: 'Conditional', type: 'JSON', nulls: true, absent: 'an event has no tags' },
];

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
