/** Formats money, usage, prices, shares and changes for people. The formatted amounts may be rounded, while the API's amounts are exact. */
import type Big from 'big.js';
import { compareDecimals, decimalOf, percentOf, roundDecimal, roundSignificant, subtractDecimals } from './amounts.js';
import { type DecimalText, decimalText, ZERO } from './decimal.js';
import type { BuiltInUnit, Unit } from './dimensions.js';

const CENT = decimalText('0.01');
const MINUS_CENT = decimalText('-0.01');
/** The number of significant digits for amounts below a cent, which would read as zero with two digits after the point. */
const DIGITS_BELOW_CENT = 2;

const UNIT_NAME: Readonly<Partial<Record<Unit, string>>> = {
  gbs: 'GB-s',
  count: 'events',
  hours: 'h',
} satisfies Record<BuiltInUnit, string>;

/** Returns the name of a unit. A unit that the platform has added is a word, such as `tokens`. */
export function unitName(unit: Unit): string {
  return UNIT_NAME[unit] ?? unit;
}

/** Formats USD with two digits after the point: `$1,234.57`. Amounts below a cent keep two significant digits: `$0.000012`. */
export function formatUsd(usd: Big | string): string {
  const amount = decimalOf(usd);
  const tiny = compareDecimals(amount, CENT) < 0 && compareDecimals(amount, MINUS_CENT) > 0 && amount !== '0';
  const rounded = tiny ? roundSignificant(amount, DIGITS_BELOW_CENT) : roundDecimal(amount, 2);
  return withDollar(grouped(padded(rounded, 2)));
}

/** Formats USD with every digit: `$1,234.567890123456`. @param amount decimal text, not necessarily in its shortest form */
export function formatUsdExact(amount: string): string {
  return withDollar(grouped(padded(amount, 2)));
}

/** Formats usage with its unit: `1,234.5 GB-s`. @param digits the maximum number of digits after the point (default: all) */
export function formatUsage(usage: Big | string, unit: Unit, digits?: number): string {
  const shown = digits === undefined ? decimalOf(usage) : roundDecimal(decimalOf(usage), digits);
  return shown === '1' ? `1 ${oneOf(unit)}` : `${grouped(shown)} ${unitName(unit)}`;
}

/** Returns the singular of a unit, such as `event` or `token`. */
function oneOf(unit: Unit): string {
  return unit === 'gbs' ? unitName(unit) : unitName(unit).replace(/s$/, '');
}

/** Formats a count with its noun: `1 event` or `1,234 events`. @param noun a noun whose plural only adds an s */
export function counted(count: number, noun: string): string {
  return `${grouped(String(count))} ${noun}${count === 1 ? '' : 's'}`;
}

/** Inserts a comma between thousands: `-1234567.5` becomes `-1,234,567.5`. */
export function grouped(amount: string): string {
  const [integer = '', fraction] = amount.split('.');
  const thousands = integer.replace(/\B(?=(?:\d{3})+$)/g, ',');
  return fraction === undefined ? thousands : `${thousands}.${fraction}`;
}

function padded(amount: string, digits: number): string {
  const [integer = '', fraction = ''] = amount.split('.');
  return `${integer}.${fraction.padEnd(digits, '0')}`;
}

function withDollar(text: string): string {
  return text.startsWith('-') ? `-$${text.slice(1)}` : `$${text}`;
}

/** Formats a share such as `12.3%`. Rounding never makes a part `0.0%` or `100.0%`: it becomes `<0.1%` or `>99.9%` instead. */
export function shareText(of: Big | string, all: Big | string): string {
  const [part, whole] = [decimalOf(of), decimalOf(all)];
  const share = percentOf(part, whole);
  if (share === undefined) return '–';
  if (share === ZERO && part !== ZERO) return '<0.1%';
  if (share === '100' && part !== whole) return '>99.9%';
  return `${share.includes('.') ? share : `${share}.0`}%`;
}

export interface Change {
  readonly difference: DecimalText;
  /** Has one digit after the point. Undefined if the previous amount was zero. */
  readonly percent: DecimalText | undefined;
  readonly direction: 'up' | 'down' | 'same';
}

export function changeFrom(before: DecimalText, now: DecimalText): Change {
  const difference = subtractDecimals(now, before);
  const sign = compareDecimals(difference, ZERO);
  return {
    difference,
    percent: percentOf(difference, before),
    direction: sign > 0 ? 'up' : sign < 0 ? 'down' : 'same',
  };
}

/** Formats a change in percent, such as `+12.3%`. The result is `new` if the previous amount was zero and the amount has changed. */
export function percentChangeText({ percent, direction }: Change): string {
  if (percent === undefined) return direction === 'same' ? '0%' : 'new';
  const digits = grouped(percent.includes('.') ? percent : `${percent}.0`);
  return `${direction === 'up' && percent !== ZERO ? '+' : ''}${digits}%`;
}

export interface UnitPrice {
  /** Decimal text in USD, not necessarily in its shortest form. */
  readonly amount: string;
  /** The number of units of the billing dimension that `amount` pays for. */
  readonly per: string;
}

/** Formats a price, such as `$0.0000115 per GB-s`, `$0.12 per GB-month`, `$0.20 per 1,000,000 events` or `$20.00 per month (730 h)`. */
export function priceText({ amount, per }: UnitPrice, unit: Unit): string {
  const quantity = KNOWN_QUANTITIES[unit]?.[per] ?? (per === '1' ? oneOf(unit) : `${grouped(per)} ${unitName(unit)}`);
  return `${formatUsdExact(amount)} per ${quantity}`;
}

/** Names of common quantities. Most price books quote storage prices per GB and month, and a month counts as 730 hours. */
const KNOWN_QUANTITIES: Readonly<Partial<Record<Unit, Readonly<Record<string, string>>>>> = {
  gbs: { '3600': 'GB-h', '2628000': 'GB-month' },
  hours: { '730': 'month (730 h)' },
};

/** Describes the content of an event that a newer one replaced, for example `was revision 1, price 2, a void` (a void cancels the event). */
export function replacedText({
  revision,
  priceRevision,
  voided,
}: {
  readonly revision: number;
  readonly priceRevision: number;
  readonly voided: boolean;
}): string {
  const price = priceRevision > 0 ? `, price ${priceRevision}` : '';
  return `was revision ${revision}${price}${voided ? ', a void' : ''}`;
}
