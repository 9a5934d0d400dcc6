/** A Markdown table, so that it can be pasted. Numbers are written with commas. */
export function markdownTable(titles: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) =>
    `| ${cells.map((cell) => (typeof cell === 'number' ? cell.toLocaleString('en') : cell)).join(' | ')} |`;
  const isNumber = (column: number) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number');
  return [line(titles), line(titles.map((_, column) => (isNumber(column) ? '---:' : '---'))), ...rows.map(line)].join(
    '\n',
  );
}
