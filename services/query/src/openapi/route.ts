/** GET /openapi.json: the API for machines. GET /docs: the same for people. Each is built once, when it is first asked for. */
import { createHash } from 'node:crypto';
import type { RequestHandler } from 'express';
import { referencePage } from '../reference/page.js';
import { STYLE } from '../reference/style.js';
import { createOpenApiDocument } from './document.js';

/** The same for every caller until the next release. */
const CACHING = 'public, max-age=300';

export function openApiRoute(): RequestHandler {
  let document: string | undefined;
  return (_request, response) => {
    document ??= JSON.stringify(createOpenApiDocument());
    response.set('Cache-Control', CACHING).type('json').send(document);
  };
}

export function referenceRoute(): RequestHandler {
  let page: string | undefined;
  const styleHash = createHash('sha256').update(STYLE).digest('base64');
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return (_request, response) => {
    page ??= referencePage(createOpenApiDocument());
    response.set({ 'Cache-Control': CACHING, 'Content-Security-Policy': policy }).type('html').send(page);
  };
}
