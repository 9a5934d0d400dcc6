/** Exact decimals for the oracle: fractions of bigints, rounded once, printed digit by digit. */

/** numerator ÷ denominator, the denominator above zero. */
export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** Plain digits with or without a fraction; undefined for any other text, also with a sign or an exponent. */
export function decimalOf(text: string): Fraction | undefined {
  const [whole = '', fraction = '0', ...rest] = text.split('.');
  if (rest.length > 0 || ![whole, fraction].every((digits) => /^[0-9]+$/.test(digits))) return undefined;
  return { numerator: BigInt(whole + fraction), denominator: 10n ** BigInt(fraction.length) };
}

/** What JavaScript prints for the number, read as a decimal; undefined for negative and infinite ones. */
export function decimalOfPrinted(value: number): Fraction | undefined {
  const [mantissa = '', exponent = '0'] = String(value).split('e');
  const decimal = decimalOf(mantissa);
  const power = 10n ** BigInt(Math.abs(Number(exponent)));
  if (!decimal) return undefined;
  return Number(exponent) < 0
    ? { numerator: decimal.numerator, denominator: decimal.denominator * power }
    : { numerator: decimal.numerator * power, denominator: decimal.denominator };
}

export function isWhole({ numerator, denominator }: Fraction): boolean {
  return numerator % denominator === 0n;
}

/** value × 10^decimals rounded half-even to an integer. Value ≥ 0. */
export function roundHalfEven({ numerator, denominator }: Fraction, decimals: number): bigint {
  const twice = 2n * numerator * 10n ** BigInt(decimals);
  const halfUp = (twice + denominator) / (2n * denominator);
  const isTie = (twice + denominator) % (2n * denominator) === 0n;
  return isTie && halfUp % 2n === 1n ? halfUp - 1n : halfUp;
}

/** The shortest text of value ÷ 10^decimals: no exponent, no trailing zeros. Value ≥ 0. */
export function printDecimal(value: bigint, decimals: number): string {
  const unit = 10n ** BigInt(decimals);
  const fraction = String(value % unit).padStart(decimals, '0');
  return `${value / unit}.${fraction}`.replace(/\.?0*$/, '');
}
