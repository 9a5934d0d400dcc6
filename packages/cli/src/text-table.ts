import { eastAsianWidth } from 'get-east-asian-width';

/**
 * Rows of text as aligned columns, the first row being the heading. Cells may hold what producers have chosen, so control
 * characters, which a terminal would obey, are made visible.
 * @param numeric indexes of the columns that are aligned to the right
 */
export function textTable(rows: readonly (readonly string[])[], numeric: readonly number[] = []): string {
  const cells = rows.map((row) => row.map(printable));
  const widths = cells[0]?.map((_, column) => Math.max(...cells.map((row) => displayWidth(row[column] ?? '')))) ?? [];
  const align = (cell: string, column: number) => padded(cell, widths[column] ?? 0, numeric.includes(column));
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

let segmenter: Intl.Segmenter | undefined;
const ASCII = /^[\x20-\x7e]*$/;

/** How many cells of a terminal a text takes: two for an ideograph or an emoji. */
export function displayWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  return [...graphemesOf(text)].reduce((width, { segment }) => width + graphemeWidth(segment), 0);
}

/** At most so many cells of a terminal, the last one an ellipsis where the text goes on. */
export function shortened(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = '';
  let used = 1;
  for (const { segment } of graphemesOf(text)) {
    used += graphemeWidth(segment);
    if (used > width) break;
    kept += segment;
  }
  return `${kept}…`;
}

export function padded(text: string, width: number, toTheRight: boolean): string {
  const space = ' '.repeat(Math.max(0, width - displayWidth(text)));
  return toTheRight ? space + text : text + space;
}

/** Made when the first text needs it: the tables of Unicode take 10 ms to load, and most texts are ASCII. */
function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter();
  return segmenter.segment(text);
}

/** A grapheme is as wide as its widest part: what joins or modifies has no width of its own. */
function graphemeWidth(grapheme: string): number {
  if (/\p{Emoji_Presentation}|\uFE0F/u.test(grapheme)) return 2;
  if (/^\p{M}*$/u.test(grapheme)) return 0;
  return Math.max(...[...grapheme].map((character) => eastAsianWidth(character.codePointAt(0) ?? 0)));
}
