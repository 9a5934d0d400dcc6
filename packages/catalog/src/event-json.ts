/** Parses the JSON of usage events without rounding numbers. A double has about 15 digits, while usage may have 24. */
import { decimalOfNumber, decimalOfNumberText } from './decimal.js';

/**
 * Matches a number of at least 16 characters that is the value of a member "usage". Shorter numbers need no match, because a double represents
 * every decimal of 15 digits. Text inside a string does not match, because the quotes around "usage" are escaped there.
 */
const LONG_USAGE =
  /(?<!\\)("usage"[ \t\r\n]*:[ \t\r\n]*)(?=[\d.eE+-]{16})((?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?=[ \t\r\n]*[,}])/g;

/** Parses JSON. A usage number with more digits than a double holds becomes a string with all its digits. @throws SyntaxError */
export function readEventJson(text: string): unknown {
  return JSON.parse(
    text.replace(LONG_USAGE, (member: string, name: string, number: string) => {
      const exact = exactDecimal(number);
      return exact === undefined ? member : `${name}"${exact}"`;
    }),
  );
}

/** Like {@link readEventJson}, but returns undefined if the text is not JSON. Valid JSON never results in undefined. */
export function parseEventJson(text: string): unknown {
  try {
    return readEventJson(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the decimal text of a JSON number that a double would round. Returns undefined if a double keeps the number, as it does for 0.1 and
 * 0.30000000000000004. Also returns undefined if the double is infinite or not above 0.
 */
export function exactDecimal(number: string): string | undefined {
  const value = Number(number);
  if (value <= 0 || !Number.isFinite(value)) return undefined;
  const { integer, fraction } = decimalOfNumberText(number);
  const read = decimalOfNumber(value);
  if (integer === read.integer && fraction === read.fraction) return undefined;
  return fraction === '' ? integer : `${integer}.${fraction}`;
}
