/**
 * Rows of text as aligned columns, the first row being the heading. Cells may hold what producers have chosen, so control
 * characters, which a terminal would obey, are made visible.
 * @param numeric indexes of the columns that are aligned to the right
 */
export function textTable(rows: readonly (readonly string[])[], numeric: readonly number[] = []): string {
  const cells = rows.map((row) => row.map(printable));
  const widths = cells[0]?.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0))) ?? [];
  const align = (cell: string, column: number) =>
    numeric.includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return cells.map((row) => row.map(align).join('  ').trimEnd()).join('\n');
}

/**
 * Control characters, and those that turn or break what follows: a name with one of them would show as another name.
 * Source: Unicode Standard Annex #9, section 2, explicit directional formatting characters.
 */
const OBEYED = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/** The text on one line, with nothing in it that a terminal would obey. */
export function printable(text: string): string {
  return text.replace(OBEYED, '\uFFFD');
}

/** At most so many characters, the last one an ellipsis where the text goes on. */
export function shortened(text: string, length: number): string {
  const characters = [...text];
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`;
}
