/** Renders tables with aligned columns. On a terminal, names are shortened to fit its width, but amounts are never shortened. */
import { styleText } from 'node:util';
import { UNPRINTABLE } from '@meterline/catalog/plain';
import { eastAsianWidth } from 'get-east-asian-width';
import type { CommandContext } from '../command.js';
import type { OutputFlags } from '../flags.js';
import { printResult } from './result.js';

export interface Column {
  readonly heading: string;
  readonly isNumeric?: boolean;
  /** Minimum width to which cells may be shortened. If it is undefined, cells are never shortened. */
  readonly minWidth?: number;
}

export interface ItemColumn<Item> extends Column {
  readonly cell: (item: Item) => string;
}

export interface Row {
  readonly cells: readonly string[];
  readonly isStrong?: boolean;
}

export interface TableLayout {
  /** The width of the terminal, or undefined if no cell needs to be shortened. */
  readonly width?: number | undefined;
  readonly style?: (format: 'bold' | 'dim', text: string) => string;
}

const GAP = '  ';

/** Renders a table. Control characters are replaced, because cells may contain names that producers chose; see {@link printable}. */
export function textTable(
  columns: readonly Column[],
  rows: readonly Row[],
  { width, style = (_, text) => text }: TableLayout = {},
): string {
  const shown = rows.map((row) => ({ ...row, cells: row.cells.map(printable) }));
  const widths = fittedWidths(columns, naturalWidths(columns, shown), width);
  const line = (cells: readonly string[]) =>
    columns
      .map(({ isNumeric = false }, index) => {
        const room = widths[index] ?? 0;
        const text = shortened(cells[index] ?? '', room);
        const padding = ' '.repeat(Math.max(0, room - displayWidth(text)));
        return isNumeric ? padding + text : text + padding;
      })
      .join(GAP)
      .trimEnd();
  return [
    style('dim', line(columns.map(({ heading }) => heading))),
    ...shown.map(({ cells, isStrong }) => (isStrong ? style('bold', line(cells)) : line(cells))),
  ].join('\n');
}

export function itemRows<Item>(columns: readonly ItemColumn<Item>[], items: readonly Item[]): Row[] {
  return items.map((item) => ({ cells: columns.map(({ cell }) => cell(item)) }));
}

/** Prints a list as the result of a command. @param none the text for people if the list is empty */
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

/** Returns a line for each name and value, made {@link printable}. */
export function fieldLines(fields: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields.map(([name, value]) => printable(`${name.padEnd(width)}${GAP}${value}`));
}

export function tableWidth(columns: readonly Column[], rows: readonly Row[]): number {
  return totalWidth(naturalWidths(columns, rows));
}

function naturalWidths(columns: readonly Column[], rows: readonly Row[]): number[] {
  return columns.map(({ heading }, index) =>
    rows.reduce((widest, { cells }) => Math.max(widest, displayWidth(cells[index] ?? '')), displayWidth(heading)),
  );
}

/** Narrows the widest column that may be shortened, step by step, until the table fits or all such columns have their minimum width. */
function fittedWidths(columns: readonly Column[], natural: readonly number[], width: number | undefined): number[] {
  const widths = [...natural];
  for (let excess = totalWidth(widths) - (width ?? Infinity); excess > 0; excess -= 1) {
    let widest = -1;
    for (const [index, { minWidth }] of columns.entries()) {
      const own = widths[index] ?? 0;
      if (minWidth !== undefined && own > minWidth && own > (widths[widest] ?? 0)) widest = index;
    }
    if (widest < 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function totalWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + GAP.length * (widths.length - 1);
}

/** Returns the layout for standard output. Colors follow Node's rules (NO_COLOR, FORCE_COLOR and TERM). A pipe or file gets none. */
export function layoutFor({ stdout }: Pick<CommandContext, 'stdout'>): Required<TableLayout> {
  return { width: stdout.columns, style: (format, text) => styleText(format, text, { stream: stdout }) };
}

/** Replaces characters that would control the terminal, break the line, or change the direction of text. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '\uFFFD');
}

/** Matches strings whose characters all take one terminal column: ASCII and sparklines. */
const NARROW = /^[\x20-\x7e·▁-█]*$/;

/** Returns the number of terminal columns that a string takes. An ideograph or emoji takes two columns. */
export function displayWidth(text: string): number {
  if (NARROW.test(text)) return text.length;
  return [...graphemesOf(text)].reduce((width, { segment }) => width + graphemeWidth(segment), 0);
}

/** Shortens a string to a number of terminal columns. An ellipsis marks the cut. */
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

let segmenter: Intl.Segmenter | undefined;

/** Creates the segmenter on first use, because its Unicode tables take 15 ms to load and most tables do not need it. */
function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter();
  return segmenter.segment(text);
}

/** Returns the width of the widest character in a grapheme, because joiners and modifiers have no width of their own. */
function graphemeWidth(grapheme: string): number {
  if (/\p{Emoji_Presentation}|\uFE0F/u.test(grapheme)) return 2;
  if (/^\p{M}*$/u.test(grapheme)) return 0;
  return Math.max(...[...grapheme].map((character) => eastAsianWidth(character.codePointAt(0) ?? 0)));
}
