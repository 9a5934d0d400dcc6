/** Arithmetic with the amounts of responses, exact to the last digit: big.js with plain text and half-even rounding. */
import Big from 'big.js';

/**
 * Money or usage to calculate with; it never changes. As text it has every digit, in its shortest form, without an exponent.
 *
 * `+`, `-`, `<` and their like throw a TypeError: they would calculate with doubles, or with text.
 */
export const Amount = Big();
export type Amount = Big;
Amount.RM = Big.roundHalfEven;
Amount.NE = Number.NEGATIVE_INFINITY;
Amount.PE = Number.POSITIVE_INFINITY;
// Amount has a prototype of its own: that of big.js belongs to all who use it.
const prototype: Big = Object.create(Big.prototype);
prototype.valueOf = () => {
  throw new TypeError('an Amount has no operators; use plus, minus, times, cmp or toNumber');
};
Object.assign(Amount, { prototype });

/** To calculate: `amount(cost).times('1.19').round(2)`. @throws Error when it is no decimal */
export function amount(value: Amount | string | number): Amount {
  return new Amount(value);
}
