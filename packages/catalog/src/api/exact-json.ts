/** Parses JSON without rounding numbers. The API writes money and usage with all digits, but a double keeps only about 15. */

/**
 * Matches a string or a number. An unclosed string extends to the end of the text. Strings are matched so that digits inside them are not taken
 * for numbers. The match of a number includes a following colon, so that the invalid text `{1: 2}` is rejected. Otherwise, `1` would be put in
 * quotes and become a valid member name.
 */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"?|-?\d[\d.eE+-]*(?:\s*:)?/g;

/** Source: RFC 8259, section 6. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Parses JSON like JSON.parse, except that each number becomes a string with its digits in the document: `0.1` becomes `'0.1'`, and 25
 * digits stay 25 digits. In Node 22 and in browsers of 2025, a reviver with `context.source` does the same in one line and is as fast. It
 * will replace this function when support for Node 20 ends (docs/decisions/0002).
 * @throws SyntaxError if the text is not JSON
 */
export function readExactJson(text: string): unknown {
  return JSON.parse(text.replace(STRING_OR_NUMBER, quoteNumber));
}

function quoteNumber(token: string): string {
  if (token.startsWith('"')) return token;
  if (!JSON_NUMBER.test(token)) throw new SyntaxError(`${token} is not a JSON number`);
  return `"${token}"`;
}

/** Parses JSON. Returns undefined if the text is not JSON. Valid JSON never results in undefined. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
