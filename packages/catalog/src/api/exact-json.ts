/** Reading JSON without doubles: the API writes money and usage digit by digit, and a double keeps 15 of them. */

/**
 * A string (up to the end of the text, if it is not closed) or a number. Strings are matched so that digits inside them
 * are not taken for numbers. A colon after a number is matched with it, so that both are refused: with quotes around it,
 * the number would read as the name of a member.
 */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"?|-?\d[\d.eE+-]*(?:\s*:)?/g;

/** The grammar of a number. Source: RFC 8259, section 6. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Like JSON.parse, but each number becomes its text in the document: `0.1` is `'0.1'`, and 25 digits stay 25 digits.
 * A reviver of JSON.parse does the same in one line with `context.source`, as fast, where it exists: Node from 22 on, and
 * browsers of 2025. It replaces this function when Node 20 is dropped (docs/decisions/0002).
 * @throws SyntaxError when the text is not JSON
 */
export function readExactJson(text: string): unknown {
  return JSON.parse(text.replace(STRING_OR_NUMBER, quoteNumber));
}

function quoteNumber(token: string): string {
  if (token.startsWith('"')) return token;
  if (!JSON_NUMBER.test(token)) throw new SyntaxError(`${token} is not a JSON number`);
  return `"${token}"`;
}
