/** Reads the JSON of usage events without rounding: a double holds 15 digits, and usage has up to 24. */
import { decimalOfNumber, decimalOfNumberText } from './decimal.js';

/**
 * A JSON number of at least 16 characters that is the value of a member "usage": a double holds every decimal of 15 digits. Inside a
 * string, the quotes around the name would be escaped.
 */
const LONG_USAGE =
  /(?<!\\)("usage"[ \t\r\n]*:[ \t\r\n]*)(?=[\d.eE+-]{16})((?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?=[ \t\r\n]*[,}])/g;

/**
 * Like JSON.parse, but usage that a double would round becomes decimal text with all its digits.
 * @throws SyntaxError when the text is not JSON
 */
export function readEventJson(text: string): unknown {
  return JSON.parse(
    text.replace(LONG_USAGE, (member: string, name: string, number: string) => {
      const exact = exactDecimal(number);
      return exact === undefined ? member : `${name}"${exact}"`;
    }),
  );
}

/** As {@link readEventJson}; undefined, which JSON cannot write, when the text is not JSON. */
export function parseEventJson(text: string): unknown {
  try {
    return readEventJson(text);
  } catch {
    return undefined;
  }
}

/**
 * Decimal text of a JSON number that a double would round. Undefined for the shortest form of a double, such as 0.30000000000000004:
 * nothing is lost. Also undefined for what is not above 0 or is infinite as a double.
 */
export function exactDecimal(number: string): string | undefined {
  const value = Number(number);
  if (value <= 0 || !Number.isFinite(value)) return undefined;
  const { integer, fraction } = decimalOfNumberText(number);
  const read = decimalOfNumber(value);
  if (integer === read.integer && fraction === read.fraction) return undefined;
  return fraction === '' ? integer : `${integer}.${fraction}`;
}
