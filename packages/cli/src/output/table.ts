/** Tables of text in aligned columns. On a terminal they fit its width: names are cut short, amounts never. */
import { eastAsianWidth } from 'get-east-asian-width';
import type { CommandContext } from '../command.js';
import type { OutputFlags } from '../flags.js';
import { printResult } from './result.js';

export interface Column {
  readonly heading: string;
  readonly isNumeric?: boolean;
  /** The width below which it is not cut; left out, it is not cut at all. */
  readonly least?: number;
}

/** A column of a list. */
export interface ItemColumn<Item> extends Column {
  readonly cell: (item: Item) => string;
}

export interface Row {
  readonly cells: readonly string[];
  readonly isStrong?: boolean;
}

export interface TableLayout {
  /** The width of the terminal; undefined: nothing is cut. */
  readonly width?: number | undefined;
  readonly style?: Style;
}

const GAP = '  ';

/** Cells may hold what producers have chosen, so control characters, which a terminal would obey, are made visible. */
export function textTable(
  columns: readonly Column[],
  rows: readonly Row[],
  { width, style = PLAIN }: TableLayout = {},
): string {
  const shown = rows.map((row) => ({ ...row, cells: row.cells.map(printable) }));
  const widths = fittedWidths(columns, naturalWidths(columns, shown), width);
  const line = (cells: readonly string[]) =>
    columns
      .map(({ isNumeric = false }, index) => {
        const room = widths[index] ?? 0;
        return padded(shortened(cells[index] ?? '', room), room, isNumeric);
      })
      .join(GAP)
      .trimEnd();
  return [
    style.quiet(line(columns.map(({ heading }) => heading))),
    ...shown.map(({ cells, isStrong }) => (isStrong ? style.strong(line(cells)) : line(cells))),
  ].join('\n');
}

/** The rows of a list, an item each. */
export function itemRows<Item>(columns: readonly ItemColumn<Item>[], items: readonly Item[]): Row[] {
  return items.map((item) => ({ cells: columns.map(({ cell }) => cell(item)) }));
}

/**
 * A list as the result of a command.
 * @param none what people read when it is empty
 * @param result with --json and --csv
 * @param fields the columns of CSV, where it is known which there are
 */
export function printList<Item>(
  context: CommandContext,
  flags: OutputFlags,
  { columns, items, none }: { columns: readonly ItemColumn<Item>[]; items: readonly Item[]; none: string },
  result: unknown = items,
  fields?: readonly string[],
): void {
  const text = items.length === 0 ? none : textTable(columns, itemRows(columns, items), layoutFor(context));
  printResult(context, flags, result, text, undefined, fields);
}

/** Lines of a name and a value each, with nothing in them that a terminal would obey. */
export function fieldLines(fields: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields.map(([name, value]) => printable(`${name.padEnd(width)}${GAP}${value}`));
}

/** What the table takes when nothing is cut. */
export function tableWidth(columns: readonly Column[], rows: readonly Row[]): number {
  return totalWidth(naturalWidths(columns, rows));
}

function naturalWidths(columns: readonly Column[], rows: readonly Row[]): number[] {
  return columns.map(({ heading }, index) =>
    rows.reduce((widest, { cells }) => Math.max(widest, displayWidth(cells[index] ?? '')), displayWidth(heading)),
  );
}

/** Takes from the widest column that may be cut, cell by cell, until the table fits or nothing is left to take. */
function fittedWidths(columns: readonly Column[], natural: readonly number[], width: number | undefined): number[] {
  const widths = [...natural];
  for (let excess = totalWidth(widths) - (width ?? Infinity); excess > 0; excess -= 1) {
    let widest = -1;
    for (const [index, { least }] of columns.entries()) {
      const own = widths[index] ?? 0;
      if (least !== undefined && own > least && own > (widths[widest] ?? 0)) widest = index;
    }
    if (widest < 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function totalWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + GAP.length * (widths.length - 1);
}

interface Style {
  strong(text: string): string;
  quiet(text: string): string;
}

const PLAIN: Style = { strong: (text) => text, quiet: (text) => text };

const COLOURED: Style = {
  strong: (text) => `\u001b[1m${text}\u001b[22m`,
  quiet: (text) => `\u001b[2m${text}\u001b[22m`,
};

/** The terminal of a command. Plain into a pipe or a file, on a dumb terminal, and where NO_COLOR is set (no-color.org). */
export function layoutFor({ stdout, environment }: Pick<CommandContext, 'stdout' | 'environment'>) {
  const { NO_COLOR, TERM } = environment;
  const isColoured = stdout.isTTY && NO_COLOR === undefined && TERM !== 'dumb';
  return { width: stdout.columns, style: isColoured ? COLOURED : PLAIN };
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

function padded(text: string, width: number, toTheRight: boolean): string {
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
