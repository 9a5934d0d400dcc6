/** The reference for people: one page built from the OpenAPI document, without scripts and without anything from other hosts. */
import type {
  JsonSchema,
  MediaType,
  OpenApiDocument,
  Operation,
  Parameter,
  Reference,
  Response,
} from '../openapi/model.js';
import { curlExamples } from '../openapi/requests.js';
import { Html, html, phrase, prose } from './html.js';
import { STYLE } from './style.js';

interface Place {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

export function referencePage(document: OpenApiDocument): string {
  const places = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const { info, tags, components } = document;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API reference</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<a class="skip" href="#content">To the content</a>
<div class="page">
${navigation(document, places)}
<main id="content">
<h1>${info.title} API</h1>
<p class="lead">${info.summary} Version ${info.version}.</p>
<div class="facts">${prose(info.description)}
<p>The same for machines: <a href="/openapi.json">openapi.json</a>, OpenAPI ${document.openapi}.</p></div>
${tags.map(
  ({ name, description }) => html`<h2 class="part">${name}</h2><p>${description}</p>
${places.filter(({ operation }) => operation.tags.includes(name)).map(operationSection)}`,
)}
<h2 class="part" id="errors">Errors</h2><p>The body of every one is an <a href="#schema-Error">Error</a>.</p>
${Object.entries(components.responses).map(errorSection)}
<h2 class="part" id="schemas">Schemas</h2><p>What answers consist of.</p>
${Object.entries(components.schemas).map(schemaSection)}
</main>
</div>
</body>
</html>
`.text;
}

/** Of the error responses among the components. */
const ERROR_TITLE: Readonly<Record<string, string>> = {
  BadRequest: '400 Bad request',
  Unauthorized: '401 Unauthorized',
  Forbidden: '403 Forbidden',
  NotFound: '404 Not found',
  TooMany: '429 Too many stored groups',
  Unavailable: '503 Unavailable',
  NotReady: '503 Not ready',
  Other: 'Any other status',
};

function navigation({ info, tags, components }: OpenApiDocument, places: readonly Place[]): Html {
  return html`<nav aria-label="Reference">
<a class="brand" href="#content">${info.title}<span>API reference</span></a>
${tags.map(
  ({ name }) =>
    html`<h2>${name}</h2><ul>${places
      .filter(({ operation }) => operation.tags.includes(name))
      .map(
        ({ method, operation }) =>
          html`<li><a href="#${operation.operationId}">${verb(method, method === 'delete' ? 'DEL' : undefined)}${operation.summary}</a></li>`,
      )}</ul>`,
)}
<h2>Details</h2><ul><li><a href="#errors">Errors</a></li>
${Object.keys(components.schemas).map((name) => html`<li><a href="#schema-${name}">${name}</a></li>`)}</ul>
</nav>`;
}

function verb(method: string, text = method.toUpperCase()): Html {
  return html`<span class="verb ${method}">${text}</span>`;
}

function operationSection({ path, method, operation }: Place): Html {
  const { operationId, summary, description, parameters, responses } = operation;
  const success = responses['200'];
  return html`<section id="${operationId}">
<h3><a href="#${operationId}">${summary}</a></h3>
<p class="route">${verb(method)}<span>${path}</span></p>
${prose(description)}
${parameters.length > 0 && html`<h4>Parameters</h4>${parameterTable(summary, parameters)}`}
<h4>Answer</h4>
${success !== undefined && answer(success)}
<h4>Example</h4>
${curlExamples({ path, method, operation }).map(
  ({
    summary: what,
    command,
    answer: body,
  }) => html`<details open><summary>${what}</summary><pre tabindex="0">${command}</pre>
${body !== undefined && html`<pre tabindex="0">${body}</pre>`}</details>`,
)}
<h4>Errors</h4>
<p>${errorLinks(responses)}</p>
</section>`;
}

function parameterTable(summary: string, parameters: readonly Parameter[]): Html {
  return html`<div class="scroll" role="region" aria-label="Parameters: ${summary}" tabindex="0"><table>
<thead><tr><th>Name</th><th>In</th><th>Type</th><th>Meaning</th></tr></thead>
<tbody>${parameters.map(
    ({ name, in: place, required, schema, description }) => html`<tr>
<td>${name}${required && html` <span class="needed">required</span>`}</td><td>${place}</td>
<td><span class="type">${typeOf(schema)}</span></td><td>${phrase(description)}${allowedValues(schema)}${defaultValue(schema)}</td></tr>`,
  )}</tbody></table></div>`;
}

function defaultValue({ default: value }: JsonSchema): Html {
  return value === undefined ? html`` : html`<span class="values">default: ${String(value)}</span>`;
}

function answer(response: Response | Reference): Html {
  if ('$ref' in response) return html``;
  const schema = response.content?.['application/json'].schema;
  return html`<p>${phrase(response.description)}${schema !== undefined && html` ${typeOf(schema)}.`}</p>`;
}

function errorLinks(responses: Operation['responses']): Html[] {
  const links = Object.entries(responses).flatMap(([status, response]) => {
    if (!('$ref' in response)) return [];
    const label = status === 'default' ? 'others' : status;
    return [html`<a href="#error-${response.$ref.split('/').at(-1)}">${label}</a>`];
  });
  return links.flatMap((link, index) => (index === 0 ? [link] : [html`, `, link]));
}

function errorSection([name, response]: [string, Response]): Html {
  const [media] = Object.values(response.content ?? {});
  return html`<section id="error-${name}"><h3>${ERROR_TITLE[name] ?? name}</h3><p>${phrase(response.description)}</p>${media && examples(media)}</section>`;
}

function schemaSection([name, schema]: [string, JsonSchema]): Html {
  const hasMembers = 'properties' in schema;
  return html`<section id="schema-${name}"><h3>${name}</h3>
${hasMembers ? schemaTable(name, schema) : html`<p class="type">${typeOf(schema)}</p>`}</section>`;
}

function examples({ examples: all = {} }: MediaType): Html[] {
  return Object.values(all).map(({ value }) => html`<pre tabindex="0">${JSON.stringify(value, null, 2)}</pre>`);
}

// A JSON Schema as a table of its members; members of members are indented.

interface Member {
  readonly name: string;
  readonly depth: number;
  readonly isRequired: boolean;
  readonly schema: JsonSchema;
}

const REFERENCE = /^#\/components\/schemas\/(\w+)$/;

function schemaTable(name: string, schema: JsonSchema): Html {
  return html`<div class="scroll" role="region" aria-label="Members of ${name}" tabindex="0"><table>
<thead><tr><th>Member</th><th>Type</th><th>Meaning</th></tr></thead>
<tbody>${membersOf(schema, 0).map(memberRow)}</tbody></table></div>`;
}

/** `array of AccountMetricsPoint`; the name links to its description. */
function typeOf(schema: JsonSchema): Html {
  const name = referencedName(schema);
  if (name !== undefined) return html`<a href="#schema-${name}">${name}</a>`;
  if (Array.isArray(schema['oneOf'])) {
    const [first, ...others] = schema['oneOf'].filter(isSchema).map(typeOf);
    return html`${first}${others.map((other) => html` or ${other}`)}`;
  }
  if (isSchema(schema['items'])) return html`array of ${typeOf(schema['items'])}`;
  return html`${String(schema['format'] ?? schema['type'] ?? 'any')}`;
}

/** The allowed values of an enum. */
function allowedValues(schema: JsonSchema): Html {
  const { enum: values } = isSchema(schema['items']) ? schema['items'] : schema;
  return Array.isArray(values) ? html`<span class="values">${values.join(' · ')}</span>` : html``;
}

function isSchema(value: unknown): value is JsonSchema {
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
