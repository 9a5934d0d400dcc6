/** How values, amounts, quantities, prices, changes and shares are written. Codes stay in the CSV and in the URL. */
import {
  type BillingDimension,
  type Change,
  type DecimalText,
  DIMENSIONS,
  decimalText,
  divideDecimals,
  ENTRY_FIELD,
  type EntryField,
  EXCLUDING_PARAMETER,
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
  ZERO,
} from '@meterline/catalog/plain';
import type { EventsQuery, FilterQuery } from '@meterline/client';
import { windowText } from '../period/period.js';
import { givenLocale } from '../shell/embed-address.js';
import type { Filter } from '../view/view.js';

export const DIMENSION_LABEL = {
  account: 'Account',
  workspace: 'Workspace',
  resource_type: 'Resource type',
  resource_name: 'Resource',
  resource_uuid: 'Instance',
  billing_dimension: 'Billing dimension',
} as const satisfies Record<MetricsDimension, string>;

/** The labels of fields as the names of filters. */
export const FIELD_LABEL = {
  workspace: DIMENSION_LABEL.workspace,
  resourceType: DIMENSION_LABEL.resource_type,
  resourceName: DIMENSION_LABEL.resource_name,
  resourceUuid: DIMENSION_LABEL.resource_uuid,
  billingDimension: DIMENSION_LABEL.billing_dimension,
} as const satisfies Record<EntryField, string>;

export const UNIT_LABEL = { gbs: 'GB-seconds', count: 'events', hours: 'hours' } as const satisfies Record<
  Unit,
  string
>;

/** How a value is shown: what producers named as it is, a code in words, without its unit: `MCP server compute`. */
export function valueLabel(field: MetricsField, value: string): string {
  if (value === '') return 'no instance id';
  if (field !== 'resourceType' && field !== 'billingDimension') return value;
  const words = value.replace(/(_runtime)?_(gbs|count|hours)$/, '').replaceAll('_', ' ');
  return words.replace('mcp', 'MCP').replace(/^./, (first) => first.toUpperCase());
}

const SEPARATORS = new Intl.NumberFormat(givenLocale ?? 'en-US').formatToParts(12_345.6);
const separatorOf = (type: Intl.NumberFormatPartTypes) => SEPARATORS.find((part) => part.type === type)?.value ?? '';
const [GROUP, DECIMAL] = [separatorOf('group'), separatorOf('decimal')];

/** A number that the catalog writes as in English, as the embedding page's locale writes it. */
export function localized(text: string): string {
  return text.replace(/[,.]/g, (separator) => (separator === ',' ? GROUP : DECIMAL));
}

/** Rounded the same way wherever it stands: money to cents. @param unit undefined: money */
export function amountText(amount: DecimalText, unit: Quantity | undefined): string {
  const text = unit === undefined ? formatUsd(amount) : quantityText(amount, unit);
  return localized(text).replace(/^-/, '−');
}

/** Every digit. Usage is in the API's own unit: in any other it may have no end. */
export function exactText(amount: DecimalText, unit: Quantity | undefined): string {
  const text = unit === undefined ? formatUsdExact(amount) : formatUsage(amount, unit.base);
  return localized(text).replace(/^-/, '−');
}

const COMPACT = new Intl.NumberFormat(givenLocale ?? 'en-US', { notation: 'compact', maximumSignificantDigits: 3 });
const SIGNIFICANT = new Intl.NumberFormat(givenLocale ?? 'en-US', {
  maximumSignificantDigits: 3,
  maximumFractionDigits: 20,
});

/** A number on an axis, which is no exact amount. */
export function axisText(value: number, unit: Quantity | undefined): string {
  if (value === 0) return unit === undefined ? '$0' : '0';
  const text = Math.abs(value) >= 1_000 ? COMPACT.format(value) : SIGNIFICANT.format(value);
  return unit === undefined ? `$${text}` : text;
}

/** From 0 to 1, for the length of a bar. */
export function shareOf(part: DecimalText, whole: DecimalText): number {
  const denominator = Number(whole);
  return denominator > 0 ? Math.min(1, Math.max(0, Number(part) / denominator)) : 0;
}

/** With its sign. @param isExact with every digit */
export function differenceText({ difference, direction }: Change, unit: Quantity | undefined, isExact = false): string {
  return `${direction === 'up' ? '+' : ''}${(isExact ? exactText : amountText)(difference, unit)}`;
}

/** `+12.3%`; `new` when there was nothing before. */
export function changePercentText(change: Change): string {
  return localized(percentChangeText(change)).replace(/^-/, '−');
}

/** `agent-1`, `3 values`, `all but agent-1`. */
export function filterText(field: EntryField, { values, isExcluded }: Filter): string {
  const [only = '', ...others] = values;
  const text = others.length === 0 ? valueLabel(field, only) : `${values.length} values`;
  return isExcluded ? `all but ${text}` : text;
}

export interface Quantity {
  readonly name: string;
  /** How much of the API's unit one of these is. */
  readonly size: DecimalText;
  /** The API's unit, in which amounts are exact. */
  readonly base: Unit;
  /** How much of the API's unit a price is for. */
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
  const { unit } = DIMENSIONS[dimension];
  if (unit === 'count') return EVENT;
  if (unit === 'hours') return HOUR;
  return dimension.endsWith('_storage_gbs') ? GB_MONTH : GB_HOUR;
}

/** The one quantity that several dimensions of one unit add up in. */
export function commonQuantity(dimensions: readonly BillingDimension[]): Quantity | undefined {
  const [first, ...others] = dimensions.map(quantityOf);
  if (!first || others.some(({ base }) => base !== first.base)) return undefined;
  return others.every(({ name }) => name === first.name) ? first : GB_HOUR;
}

const DIGITS = 2;
const DIGITS_BELOW = 2;
/** Digits of a quotient that is still to be rounded: exact for every usage that the service keeps. */
const QUOTIENT_DIGITS = 24;
const PRICE_DIGITS = 4;
const LONGEST_FRACTION = 18;

/** `1,234.57 GB-h`; an amount that two decimals would make zero keeps two significant digits. */
export function quantityText(usage: DecimalText, quantity: Quantity): string {
  const amount = divideDecimals(usage, quantity.size, QUOTIENT_DIGITS) ?? ZERO;
  const rounded = roundDecimal(amount, DIGITS);
  const shown = rounded === ZERO ? roundSignificant(amount, DIGITS_BELOW) : rounded;
  return `${grouped(shown)} ${quantity.name}`;
}

/**
 * What usage cost on average, in the words of a price book: `$0.0414 per GB-h`, with four significant digits. Undefined when nothing
 * was used. Prices may have changed within the time, so it is a quotient of what is shown, and not taken from a price book.
 */
export function unitPriceText(cost: DecimalText, usage: DecimalText, { base, priced }: Quantity): string | undefined {
  const amount = divideDecimals(usage, priced, QUOTIENT_DIGITS);
  const price = amount && divideDecimals(cost, amount, LONGEST_FRACTION);
  return price && localized(priceText({ amount: roundSignificant(price, PRICE_DIGITS), per: priced }, base));
}

/** The window and the filters in words: `14 Nov 2025 · Resource type: Agent`. */
export function scopeText(query: EventsQuery): string {
  const [startTime = 0, endTime = 0] = [query.startTime, query.endTime].map(
    (time) => parseTimestamp(String(time)) ?? 0,
  );
  return [windowText({ startTime, endTime }), ...filterTexts(query)].join(' · ');
}

/** `Resource type: Agent or Job`, `Workspace: all but main`. */
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
