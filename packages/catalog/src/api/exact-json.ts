/** Parses JSON without rounding numbers: the API writes money and usage with all digits, and a double keeps about 15. */

/**
 * Matches a string (to the end of the text if unclosed) or a number. Matching strings keeps digits inside them from being taken for
 * numbers. A colon after a number is part of the match so that `{1: 2}` is rejected: once the number is quoted, it would be a valid member
 * name.
 */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"?|-?\d[\d.eE+-]*(?:\s*:)?/g;

/** Source: RFC 8259, section 6. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Parses JSON like JSON.parse, except that each number becomes its text in the document: `0.1` is `'0.1'`, and 25 digits stay 25 digits.
 * From Node 22 on, and in browsers of 2025, a reviver with `context.source` does the same in one line, as fast; it will replace this
 * function when Node 20 support ends (docs/decisions/0002).
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

/** Parses JSON. Returns undefined, which JSON cannot represent, if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
