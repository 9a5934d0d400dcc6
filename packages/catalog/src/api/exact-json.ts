/** Reading JSON without doubles: the API writes money and usage digit by digit, and a double keeps 15 of them. */

/**
 * A string, which stays as it is, or a number. Strings are matched so that no digit inside of one is taken for a number;
 * a string that never ends is not matched, and JSON.parse refuses it.
 */
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** The grammar of a number. Source: RFC 8259, section 6. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * As JSON.parse, but each number becomes the text that stands in the document: `0.1` is `'0.1'`, and 25 digits are 25
 * digits. JSON.parse's own access to the source of a number (`context.source`) is missing in Node 20.
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
