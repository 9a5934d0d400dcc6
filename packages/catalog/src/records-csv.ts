/** Formats any records as CSV, with a column for each field. The command line and the web page use it for lists of the API. */
import { BYTE_ORDER_MARK, type CsvForm, csvLine } from './metrics-csv.js';

type Fields = Map<string, Parameters<typeof csvLine>[0][number]>;

/**
 * Formats records as CSV.
 * @param known columns that the CSV has even if no record has the field
 * @param isContinued whether the rows continue a CSV with the same fields, whose heading is already written
 */
export function csvText(
  rows: readonly unknown[],
  known: readonly string[],
  form: CsvForm,
  isContinued = false,
): string {
  const lines = rows.map((row) => addFields(new Map(), row));
  const found = [...new Set([...known, ...lines.flatMap((fields) => [...fields.keys()])])];
  // If a row has the object `price`, and another row has null instead, `price.amount` and `price` are found. Only `price.amount` is kept.
  const names = found.filter((name) => !found.some((other) => other.startsWith(`${name}.`)));
  if (names.length === 0) return '';
  const cells = lines.map((fields) => names.map((name) => fields.get(name) ?? ''));
  const heading = isContinued ? '' : `${form === 'spreadsheet' ? BYTE_ORDER_MARK : ''}${csvLine(names)}`;
  return `${heading}${cells.map((line) => csvLine(line, form)).join('')}`;
}

/** Adds a column for each field. A field of a nested object becomes a column such as `price.amount`. A list becomes one cell of JSON. */
function addFields(fields: Fields, value: unknown, name = ''): Fields {
  if (Array.isArray(value)) fields.set(name, JSON.stringify(value));
  else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) addFields(fields, inner, name === '' ? key : `${name}.${key}`);
  } else if (typeof value === 'string') fields.set(name || 'value', value);
  else if (value !== undefined) fields.set(name, value === null ? '' : { number: String(value) });
  return fields;
}
