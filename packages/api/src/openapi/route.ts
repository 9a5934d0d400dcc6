/** GET /openapi.json: the API for machines. GET /docs: the same for people. Each is built once, when it is first asked for. */
import type { RequestHandler } from 'express';
import { CONTENT_SECURITY_POLICY, REVALIDATE, readPageFiles } from '../http/web-page.js';
import { referencePage } from '../reference/page.js';
import type { OpenApiDocument } from './model.js';

/** The same for every caller until the next release. */
const CACHING = 'public, max-age=300';

export function openApiRoute(create: () => OpenApiDocument): RequestHandler {
  let document: string | undefined;
  return (_request, response) => {
    document ??= JSON.stringify(create());
    response.set('Cache-Control', CACHING).type('json').send(document);
  };
}

/** @param folder the web page's build, which has the reference's look; undefined: there is none */
export function referenceRoute(create: () => OpenApiDocument, folder: string | undefined): RequestHandler {
  let page: string | undefined;
  const readFiles = async () => (folder === undefined ? undefined : readPageFiles(folder, ENTRY));
  return async (_request, response) => {
    page ??= referencePage(create(), await readFiles());
    const headers = { 'Cache-Control': REVALIDATE, 'Content-Security-Policy': CONTENT_SECURITY_POLICY };
    response.set(headers).type('html').send(page);
  };
}

/** In the dashboard's sources. */
const ENTRY = 'src/reference/main.ts';
