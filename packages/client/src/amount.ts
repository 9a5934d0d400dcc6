/** Arithmetic with the amounts of answers, exact to the last digit. */
import {
  addDecimals,
  approximateDecimal,
  compareDecimals,
  type DecimalText,
  decimalOfNumber,
  decimalText,
  multiplyDecimals,
  parseDecimalText,
  roundDecimal,
  subtractDecimals,
} from '@meterline/catalog/questions';

/** An amount of an answer, decimal text, or a number, which means the decimal that JavaScript prints for it. */
export type AmountLike = Amount | string | number;

/**
 * Money or usage to calculate with; it never changes. As text it has every digit, in its shortest form.
 *
 * `+`, `-`, `<` and their like throw a TypeError: they would calculate with doubles, or with text.
 */
export class Amount {
  readonly #value: DecimalText;

  /** @throws TypeError when it is not a finite decimal; text has no exponent */
  constructor(value: AmountLike) {
    this.#value = decimalOf(value);
  }

  plus(other: AmountLike): Amount {
    return new Amount(addDecimals(this.#value, decimalOf(other)));
  }

  minus(other: AmountLike): Amount {
    return new Amount(subtractDecimals(this.#value, decimalOf(other)));
  }

  times(factor: AmountLike): Amount {
    return new Amount(multiplyDecimals(this.#value, decimalOf(factor)));
  }

  /** With at most so many digits after the point, half-even. */
  round(digits: number): Amount {
    return new Amount(roundDecimal(this.#value, digits));
  }

  /** Below zero, zero or above it: for `sort`. */
  compare(other: AmountLike): number {
    return compareDecimals(this.#value, decimalOf(other));
  }

  /** The nearest double, which keeps 15 digits: for a chart, not for a bill. */
  toNumber(): number {
    return approximateDecimal(this.#value);
  }

  toString(): DecimalText {
    return this.#value;
  }

  /** The text, because a JSON number would be read as a double. */
  toJSON(): DecimalText {
    return this.#value;
  }

  [Symbol.toPrimitive](hint: string): string {
    if (hint === 'string') return this.#value;
    throw new TypeError('an Amount has no operators; use plus, minus, times, compare or toNumber');
  }
}

/** To calculate: `amount(cost).times('1.19').round(2)`. @throws TypeError as the constructor of Amount */
export function amount(value: AmountLike): Amount {
  return new Amount(value);
}

function decimalOf(value: AmountLike): DecimalText {
  if (value instanceof Amount) return value.toString();
  const isNegative = typeof value === 'number' ? value < 0 : value.startsWith('-');
  const digits =
    typeof value === 'number'
      ? Number.isFinite(value) && decimalOfNumber(Math.abs(value))
      : parseDecimalText(isNegative ? value.slice(1) : value);
  if (!digits) throw new TypeError(`${value} is not a decimal, such as 12.5`);
  const { integer, fraction } = digits;
  const text = fraction === '' ? integer : `${integer}.${fraction}`;
  return decimalText(isNegative && text !== '0' ? `-${text}` : text);
}
