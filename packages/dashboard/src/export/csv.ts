/** A CSV file that a spreadsheet opens as what it is: exact numbers, and names that are never run as formulas. */

export type CsvValue = { readonly text: string } | { readonly number: string } | undefined;

/** What spreadsheets take for the beginning of a formula. Source: OWASP, "CSV Injection". */
const FORMULA = /^[=+\-@\t\r\n|%]/;
const NEEDS_QUOTES = /[",\r\n]/;
/** Without it Excel reads UTF-8 as the system's own encoding. */
const BYTE_ORDER_MARK = '\uFEFF';

/** RFC 4180, with a byte order mark. */
export function writeCsv(header: readonly string[], rows: Iterable<readonly CsvValue[]>): string {
  const lines = [header.map((text) => cell({ text })).join(',')];
  for (const row of rows) lines.push(row.map(cell).join(','));
  return `${BYTE_ORDER_MARK}${lines.join('\r\n')}\r\n`;
}

function cell(value: CsvValue): string {
  if (value === undefined) return '';
  if ('number' in value) return value.number;
  // A leading apostrophe tells a spreadsheet that what follows is text; leading blanks would not stop it.
  const safe = FORMULA.test(value.text.trimStart()) || FORMULA.test(value.text) ? `'${value.text}` : value.text;
  return NEEDS_QUOTES.test(safe) || safe.trim() !== safe ? `"${safe.replaceAll('"', '""')}"` : safe;
}
