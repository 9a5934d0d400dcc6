/** Calculates exactly with the decimal text of API responses. Quotients are rounded half-even. */
import Big from 'big.js';
import { type DecimalText, decimalText, ZERO } from './decimal.js';

/** big.js stores its settings in the constructor, and other code may change those of `Big`. This private constructor has its own settings. */
const Decimal = Big();
Decimal.RM = Big.roundHalfEven;

const textOf = (value: Big): DecimalText => decimalText(value.toFixed());

/** Returns the decimal in its shortest form. @throws Error if the string is not a decimal */
export function decimalOf(amount: Big | string): DecimalText {
  return textOf(new Decimal(amount));
}

export function addDecimals(a: DecimalText, b: DecimalText): DecimalText {
  return textOf(new Decimal(a).plus(b));
}

export function sumDecimals(amounts: Iterable<DecimalText>): DecimalText {
  return textOf([...amounts].reduce((sum, amount) => sum.plus(amount), new Decimal(0)));
}

export function subtractDecimals(a: DecimalText, b: DecimalText): DecimalText {
  return textOf(new Decimal(a).minus(b));
}

export function multiplyDecimals(a: DecimalText, b: DecimalText): DecimalText {
  return textOf(new Decimal(a).times(b));
}

export function compareDecimals(a: DecimalText, b: DecimalText): number {
  return new Decimal(a).cmp(b);
}

/** Rounds half-even to at most `digits` digits after the point. */
export function roundDecimal(amount: DecimalText, digits: number): DecimalText {
  return textOf(new Decimal(amount).round(digits));
}

/** Rounds half-even to `digits` significant digits. Never rounds digits before the point. */
export function roundSignificant(amount: DecimalText, digits: number): DecimalText {
  const value = new Decimal(amount);
  return textOf(value.prec(Math.max(digits, value.e + 1)));
}

/** Returns `part` in percent of `whole`, rounded half-even to `digits` digits after the point. Returns undefined if `whole` is zero. */
export function percentOf(part: DecimalText, whole: DecimalText, digits = 1): DecimalText | undefined {
  return divideDecimals(multiplyDecimals(part, decimalText('100')), whole, digits);
}

/** Returns a ÷ b, rounded half-even to `digits` digits after the point. Returns undefined if b is zero. */
export function divideDecimals(a: DecimalText, b: DecimalText, digits: number): DecimalText | undefined {
  if (b === ZERO) return undefined;
  Decimal.DP = digits;
  return textOf(new Decimal(a).div(b));
}
