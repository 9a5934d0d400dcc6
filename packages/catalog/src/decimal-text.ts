/** Arithmetic on exact decimals as text, for those who read the API's answers: nothing passes through a double. */
import { type DecimalText, divideHalfEven, formatScaled, isDecimalText } from './decimal.js';

/** The value times 10^scale. */
interface Scaled {
  readonly value: bigint;
  readonly scale: number;
}

export const ZERO: DecimalText = decimalText('0');

/** @throws TypeError when the text is not a decimal in its shortest form */
export function decimalText(text: string): DecimalText {
  if (!isDecimalText(text)) throw new TypeError(`${text} is not a decimal`);
  return text;
}

export function addDecimals(a: DecimalText, b: DecimalText): DecimalText {
  const [left, right, scale] = aligned(a, b);
  return written(left + right, scale);
}

export function sumDecimals(amounts: Iterable<DecimalText>): DecimalText {
  let value = 0n;
  let scale = 0;
  for (const amount of amounts) {
    const next = scaledOf(amount);
    const common = Math.max(scale, next.scale);
    value = rescaled({ value, scale }, common) + rescaled(next, common);
    scale = common;
  }
  return written(value, scale);
}

export function subtractDecimals(a: DecimalText, b: DecimalText): DecimalText {
  const [left, right, scale] = aligned(a, b);
  return written(left - right, scale);
}

/** Below zero, zero or above it, as a sort function wants it. */
export function compareDecimals(a: DecimalText, b: DecimalText): number {
  const [left, right] = aligned(a, b);
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** With at most so many digits after the point, rounded half-even. */
export function roundDecimal(amount: DecimalText, digits: number): DecimalText {
  const { value, scale } = scaledOf(amount);
  if (scale <= digits) return amount;
  return written(divideSigned(value, 10n ** BigInt(scale - digits)), digits);
}

/** `part` in percent of `whole`, rounded half-even to `digits`; undefined when the whole is zero. */
export function percentOf(part: DecimalText, whole: DecimalText, digits = 1): DecimalText | undefined {
  const [left, right] = aligned(part, whole);
  if (right === 0n) return undefined;
  const [numerator, denominator] = right < 0n ? [-left, -right] : [left, right];
  return written(divideSigned(numerator * 10n ** BigInt(digits + 2), denominator), digits);
}

/** The nearest double: for the length of a bar, never for a figure that is shown or added. */
export function approximateDecimal(amount: DecimalText): number {
  return Number(amount);
}

function scaledOf(amount: DecimalText): Scaled {
  const [integer = '', fraction = ''] = amount.split('.');
  return { value: BigInt(integer + fraction), scale: fraction.length };
}

function aligned(a: DecimalText, b: DecimalText): [bigint, bigint, number] {
  const [left, right] = [scaledOf(a), scaledOf(b)];
  const scale = Math.max(left.scale, right.scale);
  return [rescaled(left, scale), rescaled(right, scale), scale];
}

function rescaled({ value, scale }: Scaled, wanted: number): bigint {
  return wanted === scale ? value : value * 10n ** BigInt(wanted - scale);
}

function divideSigned(numerator: bigint, denominator: bigint): bigint {
  return numerator < 0n ? -divideHalfEven(-numerator, denominator) : divideHalfEven(numerator, denominator);
}

function written(value: bigint, scale: number): DecimalText {
  return decimalText(formatScaled(value, scale));
}
