/** Prints the result of a command as a table, JSON or CSV. */
import { csvLine } from '@meterline/catalog/plain';
import type { CommandStreams } from '../command.js';
import { formOf, type OutputFlags } from '../flags.js';

/**
 * Prints a result in the requested format.
 * @param value the JSON document
 * @param text the text for people
 * @param rows the rows of the CSV
 * @param fields CSV columns that are printed even if there are no rows
 */
export function printResult(
  { stdout }: Pick<CommandStreams, 'stdout'>,
  flags: OutputFlags,
  value: unknown,
  text: string,
  rows: readonly unknown[] = [value].flat(),
  fields: readonly string[] = [],
): void {
  const form = formOf(flags);
  if (form === 'table') stdout.write(`${text}\n`);
  else if (form === 'json') stdout.write(`${JSON.stringify(value)}\n`);
  else stdout.write(csvText(rows, fields, form === 'excel' ? 'spreadsheet' : 'plain'));
}

type Fields = Map<string, Parameters<typeof csvLine>[0][number]>;

function csvText(rows: readonly unknown[], known: readonly string[], form: 'spreadsheet' | 'plain'): string {
  const lines = rows.map((row) => addFields(new Map(), row));
  const found = [...new Set([...known, ...lines.flatMap((fields) => [...fields.keys()])])];
  // Drops `price` if another row has `price.amount`: a null stands for an object whose fields are columns.
  const names = found.filter((name) => !found.some((other) => other.startsWith(`${name}.`)));
  if (names.length === 0) return '';
  const cells = lines.map((fields) => names.map((name) => fields.get(name) ?? ''));
  return `${form === 'spreadsheet' ? '\uFEFF' : ''}${csvLine(names)}${cells.map((line) => csvLine(line, form)).join('')}`;
}

/** Adds a column for each field; `price.amount` for a field of a nested object. A list becomes one cell of JSON. */
function addFields(fields: Fields, value: unknown, name = ''): Fields {
  if (Array.isArray(value)) fields.set(name, JSON.stringify(value));
  else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) addFields(fields, inner, name === '' ? key : `${name}.${key}`);
  } else if (typeof value === 'string') fields.set(name || 'value', value);
  else if (value !== undefined) fields.set(name, value === null ? '' : { number: String(value) });
  return fields;
}
