/** CSV that a spreadsheet opens as data. Source: RFC 4180; OWASP, "CSV Injection". */

/** What a spreadsheet takes for the beginning of a formula. */
const FORMULA = /^[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20]/;
/** Semicolon and tab, because some spreadsheets cut there too. */
const NEEDS_QUOTES = /[",;\t\r\n]|^\s|\s$/;

/** A cell is text, which others may have chosen, or a figure of ours, which stays a figure. */
export type CsvCell = string | { readonly figure: string };

export function csvLine(cells: readonly CsvCell[]): string {
  return `${cells.map((cell) => (typeof cell === 'string' ? textCell(cell) : cell.figure)).join(',')}\r\n`;
}

function textCell(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return harmless !== text || NEEDS_QUOTES.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
