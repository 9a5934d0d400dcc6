/** What readers of responses calculate with: decimal text, exact to the last digit. Quotients are rounded half-even. */
import Big from 'big.js';
import { type DecimalText, decimalText, ZERO } from './decimal.js';

/** A constructor of our own, so that nobody else's settings reach it. */
const Decimal = Big();
Decimal.RM = Big.roundHalfEven;

const textOf = (value: Big): DecimalText => decimalText(value.toFixed());

/** In its shortest form. @throws Error for what is no decimal */
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

/** Exact: the product has the digits after the point of both factors together. */
export function multiplyDecimals(a: DecimalText, b: DecimalText): DecimalText {
  return textOf(new Decimal(a).times(b));
}

/** Below zero, zero or above it: for `sort`. */
export function compareDecimals(a: DecimalText, b: DecimalText): number {
  return new Decimal(a).cmp(b);
}

/** With at most so many digits after the point, rounded half-even. */
export function roundDecimal(amount: DecimalText, digits: number): DecimalText {
  return textOf(new Decimal(amount).round(digits));
}

/** With so many digits from the first that is not zero, rounded half-even; digits before the point stay. */
export function roundSignificant(amount: DecimalText, digits: number): DecimalText {
  const value = new Decimal(amount);
  return textOf(value.prec(Math.max(digits, value.e + 1)));
}

/** `part` in percent of `whole`, rounded half-even to `digits`; undefined when the whole is zero. */
export function percentOf(part: DecimalText, whole: DecimalText, digits = 1): DecimalText | undefined {
  return divideDecimals(multiplyDecimals(part, decimalText('100')), whole, digits);
}

/** a ÷ b, rounded half-even to `digits` after the point; undefined when b is zero. */
export function divideDecimals(a: DecimalText, b: DecimalText, digits: number): DecimalText | undefined {
  if (b === ZERO) return undefined;
  Decimal.DP = digits;
  return textOf(new Decimal(a).div(b));
}
