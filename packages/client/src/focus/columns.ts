/**
 * The columns of the export and what stands in them.
 * Source: FOCUS 1.2, https://focus.finops.org, "Columns"; the order is the specification's, which is the alphabet's.
 */
import {
  COST_SCALE,
  type DecimalText,
  type EpochMs,
  formatTimestamp,
  plainCsvLine,
  USAGE_SCALE,
} from '@meterline/catalog';

export const FOCUS_VERSION = '1.2';

/** Of a cell. Strings and decimals as they are written; null: there is none. */
interface CellOf {
  readonly String: string | null;
  readonly Decimal: DecimalText;
  readonly 'Date/Time': EpochMs;
}

const string = { type: 'String' } as const;
const time = { type: 'Date/Time' } as const;
/** USD. `scale`: the most digits after the point. */
const cost = { type: 'Decimal', scale: COST_SCALE } as const;
const quantity = { type: 'Decimal', scale: USAGE_SCALE } as const;

export const FOCUS_COLUMNS = [
  { name: 'BilledCost', ...cost },
  { name: 'BillingAccountId', ...string },
  { name: 'BillingAccountName', ...string },
  { name: 'BillingCurrency', ...string },
  { name: 'BillingPeriodEnd', ...time },
  { name: 'BillingPeriodStart', ...time },
  { name: 'ChargeCategory', ...string },
  { name: 'ChargeClass', ...string },
  { name: 'ChargeDescription', ...string },
  { name: 'ChargeFrequency', ...string },
  { name: 'ChargePeriodEnd', ...time },
  { name: 'ChargePeriodStart', ...time },
  { name: 'ConsumedQuantity', ...quantity },
  { name: 'ConsumedUnit', ...string },
  { name: 'ContractedCost', ...cost },
  { name: 'EffectiveCost', ...cost },
  { name: 'InvoiceId', ...string },
  { name: 'InvoiceIssuerName', ...string },
  { name: 'ListCost', ...cost },
  { name: 'PricingQuantity', ...quantity },
  { name: 'PricingUnit', ...string },
  { name: 'ProviderName', ...string },
  { name: 'PublisherName', ...string },
  { name: 'ResourceId', ...string },
  { name: 'ResourceName', ...string },
  { name: 'ResourceType', ...string },
  { name: 'ServiceCategory', ...string },
  { name: 'ServiceName', ...string },
  { name: 'ServiceSubcategory', ...string },
  { name: 'SkuId', ...string },
  { name: 'SkuMeter', ...string },
  { name: 'SkuPriceDetails', ...string },
  { name: 'SkuPriceId', ...string },
  { name: 'SubAccountId', ...string },
  { name: 'SubAccountName', ...string },
] as const;
export type FocusColumn = (typeof FOCUS_COLUMNS)[number];

/** One charge, a row: what one resource used of one dimension in one hour or day. */
export type FocusCharge = { readonly [Column in FocusColumn as Column['name']]: CellOf[Column['type']] };

/** RFC 4180, without the guard of `metrics --csv` against formulas: FOCUS wants every name as it is. No byte order mark. */
export function focusCsvHeading(): string {
  return plainCsvLine(FOCUS_COLUMNS.map(({ name }) => name));
}

/** The lines of some charges; a null is an empty cell. */
export function focusCsvLines(charges: readonly FocusCharge[]): string {
  return charges.map((charge) => plainCsvLine(FOCUS_COLUMNS.map(({ name }) => cellText(charge[name])))).join('');
}

function cellText(cell: FocusCharge[FocusColumn['name']]): string {
  return typeof cell === 'number' ? formatTimestamp(cell) : (cell ?? '');
}
