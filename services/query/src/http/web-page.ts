/** The web page: static files, built by packages/dashboard. */
import type { RequestHandler, Response } from 'express';
import { z } from 'zod';
import { unknownPath } from './errors.js';

/** Nothing from other origins, nothing inline, no eval. */
const CONTENT_SECURITY_POLICY = [
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
const REVALIDATE = 'no-cache';

/** The error of `sendFile` for a file that does not exist, or a name that leads out of the folder. */
const missing = z.object({ status: z.union([z.literal(403), z.literal(404)]) });

/** GET / @param folder the page's build */
export function pageRoute(folder: string): RequestHandler {
  return (request, response, next) => sendFile(request, response, folder, 'index.html', REVALIDATE, next);
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
  response.sendFile(file, { root, cacheControl: false, headers, dotfiles: 'deny' }, (error) => {
    if (!error) return;
    if (response.headersSent || !missing.safeParse(error).success) return next(error);
    next(unknownPath(path));
  });
}
