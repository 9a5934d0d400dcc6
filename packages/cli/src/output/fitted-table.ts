/** A table that fits the width of a terminal: names are cut short, figures never. */
import { displayWidth, padded, printable, shortened } from '../text-table.js';
import type { Style } from './style.js';

export interface Column {
  readonly heading: string;
  readonly isNumeric?: boolean;
  /** The width below which it is not cut; left out, it is not cut at all. */
  readonly least?: number;
}

export interface Row {
  readonly cells: readonly string[];
  readonly isStrong?: boolean;
}

const GAP = '  ';

/** @param width of the terminal; undefined where there is none, and nothing is cut */
export function fittedTable(
  columns: readonly Column[],
  rows: readonly Row[],
  width: number | undefined,
  style: Style,
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
