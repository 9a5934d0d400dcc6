/** Usage in units that people compare: memory by the hour, storage by the month, and what one such unit cost. */
import {
  type BillingDimension,
  type DecimalText,
  DIMENSIONS,
  decimalText,
  divideDecimals,
  formatUsd,
  grouped,
  roundDecimal,
  type Unit,
  ZERO,
} from '@meterline/catalog';

export interface Quantity {
  readonly name: string;
  /** How much of the API's unit one of these is. */
  readonly size: DecimalText;
  /** The API's unit, in which amounts are exact. */
  readonly base: Unit;
  /** What a price is for, where that is another number of them. */
  readonly priced?: { readonly name: string; readonly size: DecimalText };
}

const GB_HOUR: Quantity = { name: 'GB-h', size: decimalText('3600'), base: 'gbs' };
/** 730 hours, as in the price book. */
const GB_MONTH: Quantity = { name: 'GB-month', size: decimalText('2628000'), base: 'gbs' };
const HOUR: Quantity = { name: 'h', size: decimalText('1'), base: 'hours' };
const EVENT: Quantity = {
  name: 'events',
  size: decimalText('1'),
  base: 'count',
  priced: { name: '1M events', size: decimalText('1000000') },
};

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
  const shown = rounded === ZERO ? significant(amount, DIGITS_BELOW) : rounded;
  return `${grouped(shown)} ${quantity.name}`;
}

/**
 * What one unit cost on average: `$0.0414 / GB-h`, with four significant digits. Undefined when nothing was used. Prices
 * may have changed within the time, so it is a quotient of what is shown, and not taken from a price book.
 */
export function unitPriceText(cost: DecimalText, usage: DecimalText, quantity: Quantity): string | undefined {
  const { name, size } = quantity.priced ?? quantity;
  const amount = divideDecimals(usage, size, QUOTIENT_DIGITS);
  const price = amount && divideDecimals(cost, amount, LONGEST_FRACTION);
  if (price === undefined) return undefined;
  const text = significant(price, PRICE_DIGITS);
  const hasCents = (text.split('.')[1] ?? '').length > 2;
  return `${hasCents ? `$${grouped(text)}` : formatUsd(text)} / ${name}`;
}

/** With so many digits from the first that is not zero; digits before the point stay. */
function significant(amount: DecimalText, digits: number): DecimalText {
  const [integer = '', fraction = ''] = amount.replace('-', '').split('.');
  const leading = integer === '0' ? fraction.search(/[1-9]/) : -integer.length;
  return roundDecimal(amount, Math.max(0, leading + digits));
}
