/** Provides exact decimal arithmetic for amounts. Based on big.js, with half-even rounding and without exponents in strings. */
import Big from 'big.js';

/**
 * An immutable decimal for money or usage. `toString` returns all digits, without trailing zeros or an exponent.
 * Operators such as `+`, `-` and `<` throw a TypeError, because they would silently work on floating-point numbers or strings.
 */
export const Amount = Big();
export type Amount = Big;
Amount.RM = Big.roundHalfEven;
Amount.NE = Number.NEGATIVE_INFINITY;
Amount.PE = Number.POSITIVE_INFINITY;
// The prototype is a copy, so that other users of big.js keep the original `valueOf`.
const prototype: Big = Object.create(Big.prototype);
prototype.valueOf = () => {
  throw new TypeError('an Amount does not support operators; use plus, minus, times, cmp or toNumber');
};
Object.assign(Amount, { prototype });

/** Converts a value to an Amount, as in `amount(cost).times('1.19').round(2)`. @throws Error if the value is not a decimal */
export function amount(value: Amount | string | number): Amount {
  return new Amount(value);
}
