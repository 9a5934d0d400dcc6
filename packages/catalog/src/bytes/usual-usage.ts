/** The usage of an event that is as producers write it, without bigints. */
import { USAGE_SCALE } from '../decimal.js';
import type { Unit } from '../dimensions.js';

const DIGIT_ZERO = '0'.charCodeAt(0);
const POINT = '.'.charCodeAt(0);
/** The most for which every integer has a double of its own, and one digit more would not. */
const MOST_DIGITS = 15;
export const MOST_USAGE_CHARACTERS = MOST_DIGITS + 1;
const POWERS_OF_TEN = Array.from({ length: USAGE_SCALE + 1 }, (_, exponent) => 10 ** exponent);
const A_UNIT = 10 ** USAGE_SCALE;

/**
 * A usage of at most 15 digits, 9 of them after the point, scaled by 10^9; undefined for all others, and for a part of what is
 * counted.
 *
 * Why it is exact: its digits as an integer are below 10^15 < 2^53, and so is each step of reading them; a power of ten up to
 * 10^9 is a double; and the product of two integers that is rounded is above 2^53, and so is what it is rounded to.
 *
 * @param text has it from `from` up to `to`, in ASCII
 */
export function usualUsage(text: Uint8Array, from: number, to: number, unit: Unit): number | undefined {
  if (to - from > MOST_USAGE_CHARACTERS) return undefined;
  let value = 0;
  let point = -1;
  for (let at = from; at < to; at += 1) {
    const code = text[at] ?? 0;
    const digit = code - DIGIT_ZERO;
    if (digit >= 0 && digit <= 9) value = value * 10 + digit;
    else if (code === POINT && point === -1 && at > from) point = at;
    else return undefined;
  }
  const decimals = point === -1 ? 0 : to - point - 1;
  const digits = point === -1 ? to - from : to - from - 1;
  if (digits === 0 || digits > MOST_DIGITS || (point !== -1 && decimals === 0)) return undefined;
  const power = POWERS_OF_TEN[USAGE_SCALE - decimals];
  const scaled = power === undefined ? Number.NaN : value * power;
  if (unit === 'count' && scaled % A_UNIT !== 0) return undefined;
  return scaled <= Number.MAX_SAFE_INTEGER ? scaled : undefined;
}
