/** Provides exact decimal arithmetic for amounts: big.js without exponents in text, and with half-even rounding. */
import Big from 'big.js';

/**
 * An immutable decimal for money or usage. `toString` returns all digits, without trailing zeros or an exponent.
 *
 * Operators such as `+`, `-` and `<` throw a TypeError, because they would calculate with floating-point numbers or text.
 */
export const Amount = Big();
export type Amount = Big;
Amount.RM = Big.roundHalfEven;
Amount.NE = Number.NEGATIVE_INFINITY;
Amount.PE = Number.POSITIVE_INFINITY;
// A separate prototype, so that other users of big.js are not affected.
const prototype: Big = Object.create(Big.prototype);
prototype.valueOf = () => {
  throw new TypeError('an Amount does not support operators; use plus, minus, times, cmp or toNumber');
};
Object.assign(Amount, { prototype });

/** Returns an Amount: `amount(cost).times('1.19').round(2)`. @throws Error if the value is not a decimal */
export function amount(value: Amount | string | number): Amount {
  return new Amount(value);
}
