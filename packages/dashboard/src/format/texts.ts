/** Formats values, amounts, prices, changes, shares and filters for display. CSV files and URLs use the codes of the API instead. */
import {
  type BillingDimension,
  type BuiltInUnit,
  type Change,
  type DecimalText,
  decimalText,
  divideDecimals,
  ENTRY_FIELD,
  type EntryField,
  EXCLUDING_PARAMETER,
  type Filter,
  formatUsage,
  formatUsd,
  formatUsdExact,
  GROUP_BY_DIMENSIONS,
  grouped,
  type MetricsDimension,
  type MetricsField,
  parseTimestamp,
  percentChangeText,
  priceText,
  roundDecimal,
  roundSignificant,
  type Unit,
  unitOf,
  ZERO,
} from '@meterline/catalog/plain';
import type { EventsQuery, FilterQuery } from '@meterline/client';
import { windowText } from '../period/period.js';
import { localized, numberFormat } from './locale.js';

export const DIMENSION_LABEL = {
  account: 'Account',
  workspace: 'Workspace',
  resource_type: 'Resource type',
  resource_name: 'Resource',
  resource_uuid: 'Instance',
  billing_dimension: 'Billing dimension',
} as const satisfies Record<MetricsDimension, string>;

export const FIELD_LABEL = {
  workspace: DIMENSION_LABEL.workspace,
  resourceType: DIMENSION_LABEL.resource_type,
  resourceName: DIMENSION_LABEL.resource_name,
  resourceUuid: DIMENSION_LABEL.resource_uuid,
  billingDimension: DIMENSION_LABEL.billing_dimension,
} as const satisfies Record<EntryField, string>;

const UNIT_LABEL: Readonly<Partial<Record<Unit, string>>> = {
  gbs: 'GB-seconds',
  count: 'events',
  hours: 'hours',
} satisfies Record<BuiltInUnit, string>;

export function unitLabel(unit: Unit): string {
  return UNIT_LABEL[unit] ?? unit;
}

export const LIST = new Intl.ListFormat('en-GB');

/** Formats a value. A name that a producer chose stays unchanged. A code becomes words without a unit, such as `MCP server compute`. */
export function valueLabel(field: MetricsField, value: string): string {
  if (value === '') return 'no instance ID';
  if (field !== 'resourceType' && field !== 'billingDimension') return value;
  const named = field === 'billingDimension' ? value.replace(/(_runtime)?_[a-z]+$/, '') : value;
  const words = named.replaceAll('_', ' ');
  return words.replace('mcp', 'MCP').replace(/^./, (first) => first.toUpperCase());
}

/** Formats an amount. Rounds money to cents, and usage to two decimals. @param unit undefined for money */
export function amountText(amount: DecimalText, unit: Quantity | undefined): string {
  const text = unit === undefined ? formatUsd(amount) : quantityText(amount, unit);
  return localized(text).replace(/^-/, '−');
}

/** Formats an amount with every digit. Usage keeps the unit of the API, because a conversion may have infinitely many digits. */
export function exactText(amount: DecimalText, unit: Quantity | undefined): string {
  const text = unit === undefined ? formatUsdExact(amount) : formatUsage(amount, unit.base);
  return localized(text).replace(/^-/, '−');
}

const compact = numberFormat({ notation: 'compact', maximumSignificantDigits: 3 });
const significant = numberFormat({ maximumSignificantDigits: 3, maximumFractionDigits: 20 });

/** Formats a label of an axis. @param value a rounded number in the given unit */
export function axisText(value: number, unit: Quantity | undefined): string {
  if (value === 0) return unit === undefined ? '$0' : '0';
  const text = Math.abs(value) >= 1_000 ? compact(value) : significant(value);
  return unit === undefined ? `$${text}` : text;
}

/** Returns the share as a number from 0 to 1, which is the length of a bar. */
export function shareOf(part: DecimalText, whole: DecimalText): number {
  const denominator = Number(whole);
  return denominator > 0 ? Math.min(1, Math.max(0, Number(part) / denominator)) : 0;
}

/** Formats a difference with its sign. @param isExact shows every digit */
export function differenceText({ difference, direction }: Change, unit: Quantity | undefined, isExact = false): string {
  return `${direction === 'up' ? '+' : ''}${(isExact ? exactText : amountText)(difference, unit)}`;
}

/** Formats a change, such as `+12.3%`. Returns `new` if the previous amount is zero. */
export function changePercentText(change: Change): string {
  return localized(percentChangeText(change)).replace(/^-/, '−');
}

/** Returns the direction of a change for its color. A change that is shown as 0.0% is neutral. */
export function toneOf({ direction, percent }: Change): Change['direction'] {
  return percent === ZERO ? 'same' : direction;
}

/** Describes a filter, such as `agent-1`, `3 values` or `all but agent-1`. */
export function filterText(field: EntryField, { values, isExcluded }: Filter): string {
  const [first = '', ...others] = values;
  const text = others.length === 0 ? valueLabel(field, first) : `${values.length} values`;
  return isExcluded ? `all but ${text}` : text;
}

export interface Quantity {
  readonly name: string;
  /** The size of this unit in base units. For example, one GB-h is 3,600 GB-s. */
  readonly size: DecimalText;
  /** The unit of the API. Amounts in this unit are exact. */
  readonly base: Unit;
  /** The number of base units that a price applies to, such as 3,600 GB-s for a price per GB-h. */
  readonly priced: DecimalText;
}

const ONE = decimalText('1');
const PER_HOUR = decimalText('3600');
/** A month has 730 hours, as in the price book. */
const PER_MONTH = decimalText('2628000');

const GB_HOUR: Quantity = { name: 'GB-h', size: PER_HOUR, base: 'gbs', priced: PER_HOUR };
const GB_MONTH: Quantity = { name: 'GB-month', size: PER_MONTH, base: 'gbs', priced: PER_MONTH };
const HOUR: Quantity = { name: 'h', size: ONE, base: 'hours', priced: decimalText('730') };
const EVENT: Quantity = { name: 'events', size: ONE, base: 'count', priced: decimalText('1000000') };

export function quantityOf(dimension: BillingDimension): Quantity {
  const unit = unitOf(dimension);
  if (unit === 'count') return EVENT;
  if (unit === 'hours') return HOUR;
  if (unit !== 'gbs') return { name: unit, size: ONE, base: unit, priced: ONE };
  return dimension.endsWith('_storage_gbs') ? GB_MONTH : GB_HOUR;
}

/** Returns a quantity in which the usage of all dimensions can be added up, or undefined if their base units differ. */
export function commonQuantity(dimensions: readonly BillingDimension[]): Quantity | undefined {
  const [first, ...others] = dimensions.map(quantityOf);
  if (!first || others.some(({ base }) => base !== first.base)) return undefined;
  return others.every(({ name }) => name === first.name) ? first : GB_HOUR;
}

const DECIMALS = 2;
const SIGNIFICANT_DIGITS = 2;
/** Decimals of usage divided by a unit, before rounding. Usage has at most 9 decimals, so even the smallest usage keeps several digits. */
const QUOTIENT_DECIMALS = 24;
const PRICE_SIGNIFICANT_DIGITS = 4;
const PRICE_DECIMALS = 18;

/** Formats usage, such as `1,234.57 GB-h`. An amount that would be rounded to zero shows two significant digits instead. */
export function quantityText(usage: DecimalText, quantity: Quantity): string {
  const amount = divideDecimals(usage, quantity.size, QUOTIENT_DECIMALS) ?? ZERO;
  const rounded = roundDecimal(amount, DECIMALS);
  const shown = rounded === ZERO ? roundSignificant(amount, SIGNIFICANT_DIGITS) : rounded;
  return `${grouped(shown)} ${quantity.name}`;
}

/**
 * Returns the average price with four significant digits in the format of a price book, such as `$0.0414 per GB-h`. Returns undefined if
 * there is no usage. The average is the cost divided by the usage, because the prices in the price book may have changed within the period.
 */
export function unitPriceText(cost: DecimalText, usage: DecimalText, { base, priced }: Quantity): string | undefined {
  const amount = divideDecimals(usage, priced, QUOTIENT_DECIMALS);
  const price = amount && divideDecimals(cost, amount, PRICE_DECIMALS);
  return (
    price && localized(priceText({ amount: roundSignificant(price, PRICE_SIGNIFICANT_DIGITS), per: priced }, base))
  );
}

/** Describes the window and the filters, such as `14 Nov 2025 · Resource type: Agent`. */
export function scopeText(query: EventsQuery): string {
  const [startTime = 0, endTime = 0] = [query.startTime, query.endTime].map(
    (time) => parseTimestamp(String(time)) ?? 0,
  );
  return [windowText({ startTime, endTime }), ...filterTexts(query)].join(' · ');
}

/** Describes each filter, such as `Resource type: Agent or Job` or `Workspace: all but main`. */
export function filterTexts(query: FilterQuery): string[] {
  return GROUP_BY_DIMENSIONS.flatMap((dimension) => {
    const field = ENTRY_FIELD[dimension];
    const isUuid = field === 'resourceUuid';
    const labels = (without: boolean | undefined, named: string | readonly string[] = []) =>
      [...(isUuid && without ? [''] : []), ...[named].flat()].map((value) => valueLabel(field, value));
    const included = labels(query.withoutResourceUuid, query[field]);
    const excluded = labels(query.excludeWithoutResourceUuid, query[EXCLUDING_PARAMETER[field]]);
    return [
      ...(included.length > 0 ? [`${DIMENSION_LABEL[dimension]}: ${included.join(' or ')}`] : []),
      ...(excluded.length > 0 ? [`${DIMENSION_LABEL[dimension]}: all but ${excluded.join(' and ')}`] : []),
    ];
  });
}
