/** JSON Schemas for people: a type in a word, and the members of an object as a table. */
import type { JsonSchema } from '../openapi/model.js';
import { type Html, html, phrase } from './html.js';

interface Member {
  readonly name: string;
  readonly depth: number;
  readonly isRequired: boolean;
  readonly schema: JsonSchema;
}

const REFERENCE = /^#\/components\/schemas\/(\w+)$/;

/** Members of members are indented. */
export function schemaTable(name: string, schema: JsonSchema): Html {
  return html`<div class="scroll" role="region" aria-label="Members of ${name}" tabindex="0"><table>
<thead><tr><th>Member</th><th>Type</th><th>Meaning</th></tr></thead>
<tbody>${membersOf(schema, 0).map(memberRow)}</tbody></table></div>`;
}

/** `array of AccountMetricsPoint`; the name links to its description. */
export function typeOf(schema: JsonSchema): Html {
  const name = referencedName(schema);
  if (name !== undefined) return html`<a href="#schema-${name}">${name}</a>`;
  const choices = schema['oneOf'] ?? schema['anyOf'];
  if (Array.isArray(choices)) {
    const [first, ...others] = choices.filter(isSchema).map(typeOf);
    return html`${first}${others.map((other) => html` or ${other}`)}`;
  }
  if (isSchema(schema['items'])) return html`array of ${typeOf(schema['items'])}`;
  return html`${String(schema['format'] ?? schema['type'] ?? 'any')}`;
}

/** The allowed values of an enum. */
export function allowedValues(schema: JsonSchema): Html {
  const { enum: values } = isSchema(schema['items']) ? schema['items'] : schema;
  return Array.isArray(values) ? html`<span class="values">${values.join(' · ')}</span>` : html``;
}

export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function memberRow({ name, depth, isRequired, schema }: Member): Html {
  const description = typeof schema['description'] === 'string' ? phrase(schema['description']) : '';
  return html`<tr><td><span class="depth${depth}">${name}</span></td>
<td><span class="type">${typeOf(schema)}</span>${!isRequired && html`<span class="type">, optional</span>`}</td>
<td>${description}${allowedValues(schema)}</td></tr>`;
}

function membersOf(schema: JsonSchema, depth: number): Member[] {
  const holder = isSchema(schema['items']) ? schema['items'] : schema;
  if (!isSchema(holder['properties'])) return [];
  const required = Array.isArray(holder['required']) ? holder['required'] : [];
  return Object.entries(holder['properties']).flatMap(([name, member]) => {
    if (!isSchema(member)) return [];
    return [{ name, depth, isRequired: required.includes(name), schema: member }, ...membersOf(member, depth + 1)];
  });
}

function referencedName({ $ref }: JsonSchema): string | undefined {
  return typeof $ref === 'string' ? REFERENCE.exec($ref)?.[1] : undefined;
}
