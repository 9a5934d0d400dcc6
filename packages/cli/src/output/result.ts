/** Prints the result of a command as a table, JSON or CSV. */
import { csvText } from '@meterline/catalog/plain';
import type { CommandStreams } from '../command.js';
import { formOf, type OutputFlags } from '../flags.js';

/** Prints a result: `value` as JSON, `text` for people, or `rows` as CSV. The CSV has the columns `fields` even if there are no rows. */
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
