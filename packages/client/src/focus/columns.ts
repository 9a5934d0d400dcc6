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
  type Window,
} from '@meterline/catalog';

export const FOCUS_VERSION = '1.2';

/** Strings and decimals as they are written; a Date/Time in epoch milliseconds; null: there is none. */
type FocusType = 'String' | 'Decimal' | 'Date/Time';

/** One charge: what one resource used of one dimension in one hour or day. */
export interface FocusCharge {
  readonly account: { readonly id: string; readonly name: string };
  /** Of the provider, which publishes and invoices too. */
  readonly provider: string;
  readonly month: Window;
  readonly period: Window;
  readonly description: string;
  readonly resourceId: string;
  readonly resourceName: string;
  readonly resourceType: string;
  readonly serviceName: string;
  readonly serviceCategory: string;
  readonly serviceSubcategory: string;
  /** The billing dimension. */
  readonly sku: string;
  readonly meter: string;
  /** In `unit`, exact to 9 decimals. */
  readonly usage: DecimalText;
  readonly unit: string;
  /** USD, exact to 12 decimals. */
  readonly cost: DecimalText;
  /** Null where the caller may not see workspaces. */
  readonly workspace: string | null;
}

interface Column<Type extends FocusType, Value> {
  readonly name: string;
  readonly type: Type;
  readonly value: (charge: FocusCharge) => Value | null;
}

/** `scale`: the most digits after the point. */
export type FocusColumn =
  | Column<'String', string>
  | Column<'Date/Time', EpochMs>
  | (Column<'Decimal', DecimalText> & { readonly scale: number });

function string(name: string, value: (charge: FocusCharge) => string | null): FocusColumn {
  return { name, type: 'String', value };
}

function time(name: string, value: (charge: FocusCharge) => EpochMs): FocusColumn {
  return { name, type: 'Date/Time', value };
}

/** USD. Nothing is discounted after its price or paid in advance, so all four costs are what the events cost. */
function cost(name: string): FocusColumn {
  return { name, type: 'Decimal', scale: COST_SCALE, value: (charge) => charge.cost };
}

/** Prices are of the unit that usage is measured in, so both quantities are the usage. */
function quantity(name: string): FocusColumn {
  return { name, type: 'Decimal', scale: USAGE_SCALE, value: (charge) => charge.usage };
}

const none = () => null;

export const FOCUS_COLUMNS: readonly FocusColumn[] = [
  cost('BilledCost'),
  string('BillingAccountId', ({ account }) => account.id),
  string('BillingAccountName', ({ account }) => account.name),
  string('BillingCurrency', () => 'USD'),
  time('BillingPeriodEnd', ({ month }) => month.endTime),
  time('BillingPeriodStart', ({ month }) => month.startTime),
  string('ChargeCategory', () => 'Usage'),
  // Meterline issues no invoices, so no charge corrects one: a late or corrected event changes the rows of its own month.
  string('ChargeClass', none),
  string('ChargeDescription', ({ description }) => description),
  string('ChargeFrequency', () => 'Usage-Based'),
  time('ChargePeriodEnd', ({ period }) => period.endTime),
  time('ChargePeriodStart', ({ period }) => period.startTime),
  quantity('ConsumedQuantity'),
  string('ConsumedUnit', ({ unit }) => unit),
  cost('ContractedCost'),
  cost('EffectiveCost'),
  string('InvoiceId', none),
  string('InvoiceIssuerName', ({ provider }) => provider),
  cost('ListCost'),
  quantity('PricingQuantity'),
  string('PricingUnit', ({ unit }) => unit),
  string('ProviderName', ({ provider }) => provider),
  string('PublisherName', ({ provider }) => provider),
  string('ResourceId', ({ resourceId }) => resourceId),
  string('ResourceName', ({ resourceName }) => resourceName),
  string('ResourceType', ({ resourceType }) => resourceType),
  string('ServiceCategory', ({ serviceCategory }) => serviceCategory),
  string('ServiceName', ({ serviceName }) => serviceName),
  string('ServiceSubcategory', ({ serviceSubcategory }) => serviceSubcategory),
  string('SkuId', ({ sku }) => sku),
  string('SkuMeter', ({ meter }) => meter),
  string('SkuPriceDetails', none),
  // A price list has one price for a dimension at a time.
  string('SkuPriceId', ({ sku }) => sku),
  string('SubAccountId', ({ workspace }) => workspace),
  string('SubAccountName', ({ workspace }) => workspace),
];

/** RFC 4180, without the guard of `metrics --csv` against formulas: FOCUS wants every name as it is. No byte order mark. */
export function focusCsvHeading(): string {
  return plainCsvLine(FOCUS_COLUMNS.map(({ name }) => name));
}

/** The lines of some charges; a null is an empty cell. */
export function focusCsvLines(charges: readonly FocusCharge[]): string {
  return charges.map((charge) => plainCsvLine(FOCUS_COLUMNS.map((column) => cellText(column, charge)))).join('');
}

function cellText(column: FocusColumn, charge: FocusCharge): string {
  if (column.type === 'Date/Time') {
    const instant = column.value(charge);
    return instant === null ? '' : formatTimestamp(instant);
  }
  return column.value(charge) ?? '';
}
