/**
 * Values of a statement's parameters, as text of the TabSeparated format. The official client has such a function too but
 * does not export it. Source: ClickHouse documentation, "HTTP interface", "Queries with parameters".
 */

export type Parameter = string | number | bigint | Tuple | readonly Parameter[];

/** Members may be of different types, those of an array may not. */
export class Tuple {
  constructor(readonly members: readonly Parameter[]) {}
}

export function formatParameter(value: Parameter): string {
  return typeof value === 'string' ? escaped(value) : formatMember(value);
}

/** As a member of an array or a tuple: there, texts have quotes. */
function formatMember(value: Parameter): string {
  if (typeof value === 'string') return `'${escaped(value)}'`;
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  if (value instanceof Tuple) return `(${value.members.map(formatMember).join(',')})`;
  return `[${value.map(formatMember).join(',')}]`;
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', "'": "\\'", '\t': '\\t', '\n': '\\n', '\r': '\\r' };

function escaped(value: string): string {
  return value.replace(/[\\'\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}
