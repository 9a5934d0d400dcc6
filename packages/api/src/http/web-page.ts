/** The web page: static files, built by packages/dashboard. */
import { readFile } from 'node:fs/promises';
import type { RequestHandler, Response } from 'express';
import { z } from 'zod';
import type { PageFiles } from '../reference/page.js';
import { fileHasChanged, unknownPath } from './errors.js';

/** Nothing from other origins, nothing inline, no eval. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** For files whose name has a hash of their content: they never change. */
const IMMUTABLE = 'public, max-age=31536000, immutable';
/** Cached, but checked each time: it names the files of the version that is deployed. */
export const REVALIDATE = 'no-cache';

/** The errors of `sendFile` for a name that is not that of a file in the folder. Source: the npm package send. */
const missing = z.union([
  // One that no file can have, one that leads out of the folder or begins with a dot, and one that no file has.
  z.object({ status: z.union([z.literal(400), z.literal(403), z.literal(404)]) }),
  // That of the folder itself.
  z.object({ code: z.literal('EISDIR') }),
]);
/** `If-Match` or `If-Unmodified-Since` does not hold. */
const preconditionFailed = z.object({ status: z.literal(412) });

const paths = z.array(z.string()).default([]);
/** What Vite writes of each entry, with paths below the build's folder. Source: Vite's guide, "Backend Integration". */
const manifest = z.record(z.string(), z.object({ file: z.string(), css: paths, assets: paths }));

/** The typeface of the page, in the part that has the letters of English. */
const FONT = /latin-wght.*\.woff2$/;

/**
 * The addresses of an entry of the build.
 * @throws when the build has no such entry
 */
export async function readPageFiles(folder: string, entry: string): Promise<PageFiles> {
  const entries = manifest.parse(JSON.parse(await readFile(`${folder}/.vite/manifest.json`, 'utf8')));
  const found = entries[entry];
  if (!found) throw new Error(`the web page's build has no entry ${entry}`);
  const font = found.assets.find((path) => FONT.test(path));
  return {
    script: `/${found.file}`,
    styles: found.css.map((path) => `/${path}`),
    font: font === undefined ? undefined : `/${font}`,
  };
}

/** GET / @param folder the page's build */
export function pageRoute(folder: string): RequestHandler {
  return (request, response, next) => sendFile(request, response, folder, 'index.html', REVALIDATE, next);
}

export interface PageSettings {
  /** Where producers reach the collector. */
  readonly collectorUrl: string | undefined;
}

/** GET /page-settings.json: what the page cannot know from its own address. It is told to everybody, as the page is. */
export function pageSettingsRoute({ collectorUrl }: PageSettings): RequestHandler {
  return (_request, response) => {
    response.set('Cache-Control', REVALIDATE).json({ collectorUrl });
  };
}

/** GET /assets/{file} */
export function assetRoute(folder: string): RequestHandler<{ file: string }> {
  return (request, response, next) =>
    sendFile(request, response, `${folder}/assets`, request.params.file, IMMUTABLE, next);
}

function sendFile(
  { path }: { path: string },
  response: Response,
  root: string,
  file: string,
  caching: string,
  next: (error?: unknown) => void,
) {
  const headers = { 'Cache-Control': caching, 'Content-Security-Policy': CONTENT_SECURITY_POLICY };
  // These files are small: a Range is ignored, as RFC 9110, section 14.2, allows.
  const options = { root, index: false, cacheControl: false, acceptRanges: false, headers, dotfiles: 'deny' } as const;
  response.sendFile(file, options, (error) => {
    if (!error) return;
    if (response.headersSent) return next(error);
    // Those of the file, which the error would be sent with.
    for (const name of ['Content-Type', 'ETag', 'Last-Modified']) response.removeHeader(name);
    response.set('Cache-Control', 'private, no-store');
    if (missing.safeParse(error).success) return next(unknownPath(path));
    if (preconditionFailed.safeParse(error).success) return next(fileHasChanged());
    next(error);
  });
}
