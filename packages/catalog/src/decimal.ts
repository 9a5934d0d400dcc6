/**
 * Calculates with exact decimals, never through a double. There are two forms. Events are stored and added as scaled bigints (1.5 at scale
 * 9 is 1_500_000_000n), which price an event in 0.18 µs where big.js takes 0.69 (docs/decisions/0002). API responses hold decimal text, and
 * their readers calculate in amounts.ts with big.js.
 */

export const USAGE_SCALE = 9;
export const COST_SCALE = 12;

/** Digits, optionally with a point and a fraction. No sign, no exponent. */
const DECIMAL_TEXT = /^(\d+)(?:\.(\d+))?$/;

/** The digits of a non-negative decimal. `integer` has no leading zeros, `fraction` no trailing zeros. */
export interface DecimalDigits {
  readonly integer: string;
  readonly fraction: string;
}

/** Splits plain decimal text into its digits. Returns undefined for other text, such as "-1", "1e3", ".5" and "". */
export function parseDecimalText(text: string): DecimalDigits | undefined {
  const match = DECIMAL_TEXT.exec(text);
  if (!match) return undefined;
  const [, integer = '', fraction = ''] = match;
  return { integer: stripLeadingZeros(integer), fraction: stripTrailingZeros(fraction) };
}

/** Returns the digits that JavaScript prints for a finite number ≥ 0, without an exponent: 1e-7 is 0.0000001. */
export function decimalOfNumber(value: number): DecimalDigits {
  return decimalOfNumberText(String(value));
}

/** Returns the digits of a JSON number ≥ 0. @param text its exponent must fit a double, because all digits are written out */
export function decimalOfNumberText(text: string): DecimalDigits {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [integer = '', fraction = ''] = mantissa.split('.');
  const digits = integer + fraction;
  const point = integer.length + Number(exponent);
  const whole = point > 0 ? digits.slice(0, point).padEnd(point, '0') : '';
  const rest = point > 0 ? digits.slice(point) : '0'.repeat(-point) + digits;
  return { integer: stripLeadingZeros(whole), fraction: stripTrailingZeros(rest) };
}

/** Scales the digits to a bigint, rounding half-even if the fraction is longer than the scale. */
export function toScaled({ integer, fraction }: DecimalDigits, scale: number): bigint {
  const digits = integer + fraction.slice(0, scale).padEnd(scale, '0');
  // Converting a number to a bigint takes a third of the time of converting text, and is exact for up to 15 digits.
  const kept = BigInt(digits.length <= 15 ? Number(digits) : digits);
  const rest = fraction.slice(scale);
  if (rest === '') return kept;
  // Trailing zeros are gone, so exactly half is "5", and a longer remainder that starts with 5 is above half.
  const up = rest === '5' ? kept % 2n === 1n : rest >= '5';
  return up ? kept + 1n : kept;
}

/** Divides, rounding half-even. Requires numerator ≥ 0 and denominator > 0. */
export function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  const twice = (numerator - quotient * denominator) * 2n;
  if (twice < denominator) return quotient;
  if (twice > denominator) return quotient + 1n;
  return quotient % 2n === 0n ? quotient : quotient + 1n;
}

/** Formats the shortest exact text: no exponent, no trailing zeros, no point without a fraction. */
export function formatScaled(value: bigint, scale: number): string {
  const sign = value < 0n ? '-' : '';
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, '0');
  const integer = digits.slice(0, digits.length - scale);
  const fraction = stripTrailingZeros(digits.slice(digits.length - scale));
  return fraction === '' ? sign + integer : `${sign}${integer}.${fraction}`;
}

/** An exact decimal as text, valid in JSON as a number. */
export type DecimalText = string & { readonly __brand: 'DecimalText' };

const CANONICAL_DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/;

/** Accepts the shortest form only. */
export function isDecimalText(text: string): text is DecimalText {
  return CANONICAL_DECIMAL.test(text);
}

export const ZERO: DecimalText = /* @__PURE__ */ decimalText('0');

/** @throws TypeError if the text is not a decimal in its shortest form */
export function decimalText(text: string): DecimalText {
  if (!isDecimalText(text)) throw new TypeError(`${text} is not a decimal`);
  return text;
}

function stripLeadingZeros(digits: string): string {
  let start = 0;
  while (digits[start] === '0' && start < digits.length - 1) start += 1;
  return digits.slice(start) || '0';
}

/** Uses a loop because /0+$/ takes quadratic time on a long run of zeros inside the text, and producers choose the text. */
function stripTrailingZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}
