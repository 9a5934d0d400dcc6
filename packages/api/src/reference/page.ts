/**
 * The reference for people: one page built from the OpenAPI document. Everything can be read without a script. Its look, and the
 * script that sends requests, are files of the web page's build (packages/dashboard/src/reference).
 */
import type { JsonSchema, MediaType, OpenApiDocument, Response } from '../openapi/model.js';
import type { Place } from '../openapi/requests.js';
import { type Html, html, phrase, prose } from './html.js';
import { operationSection, verb } from './operation.js';
import { schemaTable, typeOf } from './schema-table.js';

/** Addresses on this server. */
export interface PageFiles {
  readonly script: string;
  readonly styles: readonly string[];
  /** That of most text. */
  readonly font: string | undefined;
}

/** @param files undefined where the web page is not built: the reference is plain then, and sends nothing */
export function referencePage(document: OpenApiDocument, files?: PageFiles): string {
  const places = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const { info, tags, components } = document;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} API reference</title>
${files?.font !== undefined && html`<link rel="preload" href="${files.font}" as="font" type="font/woff2" crossorigin>`}
${files?.styles.map((address) => html`<link rel="stylesheet" href="${address}">`)}
${files && html`<script type="module" src="${files.script}" blocking="render"></script>`}
</head>
<body>
<a class="skip" href="#content">To the content</a>
<header class="top"><a class="brand" href="#content">${LOGO}${info.title}</a><span class="what">API reference</span>
<span class="top-end">${files && html`<a href="/">Cost explorer</a>`}<button type="button" class="theme-switch" hidden></button></span></header>
<div class="reference">
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

/** That of the web page. */
const LOGO = html`<svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="8"/><path d="M8 23V15M13.5 23V9M19 23v-6M24.5 23V12"/></svg>`;

/** Of the error responses among the components. */
const ERROR_TITLE: Readonly<Record<string, string>> = {
  BadRequest: '400 Bad request',
  Unauthorized: '401 Unauthorized',
  Forbidden: '403 Forbidden',
  NotFound: '404 Not found',
  Conflict: '409 Conflict',
  TooMany: '429 Too many',
  Unavailable: '503 Unavailable',
  NotReady: '503 Not ready',
  Other: 'Any other status',
};

function navigation({ tags, components }: OpenApiDocument, places: readonly Place[]): Html {
  return html`<nav aria-label="Reference"><details open><summary>Contents</summary>
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
</details></nav>`;
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
