/** Amounts for the places where every digit would be in the way. The table has them all. */
import {
  approximateDecimal,
  type DecimalText,
  formatUsage,
  formatUsd,
  percentOf,
  UNIT_NAME,
  type Unit,
  ZERO,
} from '@meterline/catalog';
import type { Change } from './change.js';

const USAGE_DIGITS = 1;

/** @param unit undefined: money */
export function amountText(amount: DecimalText, unit: Unit | undefined): string {
  const text = unit === undefined ? formatUsd(amount) : formatUsage(amount, unit, USAGE_DIGITS);
  return text.replace(/^-/, '−');
}

export function differenceText({ difference, direction }: Change, unit: Unit | undefined): string {
  return `${direction === 'up' ? '+' : ''}${amountText(difference, unit)}`;
}

const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });
const SIGNIFICANT = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3, maximumFractionDigits: 14 });

/** A round number on an axis, which stands for no amount. */
export function axisText(value: number, unit: Unit | undefined): string {
  if (value === 0) return unit === undefined ? '$0' : '0';
  const text = Math.abs(value) >= 1_000 ? COMPACT.format(value) : SIGNIFICANT.format(value);
  return unit === undefined ? `$${text}` : text;
}

export function axisUnitText(unit: Unit | undefined): string {
  return unit === undefined ? 'USD' : UNIT_NAME[unit];
}

const TENTH = '0.1';

/** `12.3%`; a share that is not nothing does not read as nothing. */
export function shareText(part: DecimalText, whole: DecimalText): string {
  const share = percentOf(part, whole);
  if (share === undefined) return '–';
  if (share === ZERO && part !== ZERO) return `<${TENTH}%`;
  const isAll = part === whole;
  return `${share === '100' && !isAll ? '>99.9' : share.includes('.') ? share : `${share}.0`}%`;
}

/** 0 to 1, for the length of a bar. */
export function shareOf(part: DecimalText, whole: DecimalText): number {
  const denominator = approximateDecimal(whole);
  return denominator > 0 ? Math.min(1, Math.max(0, approximateDecimal(part) / denominator)) : 0;
}
