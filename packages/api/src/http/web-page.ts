/** The web page: static files, built by packages/dashboard. */
import type { RequestHandler, Response } from 'express';
import { z } from 'zod';
import { ApiError, unknownPath } from './errors.js';

/** Nothing from other origins, nothing inline, no eval. */
const STRICT = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
];

/** @param frameAncestors origins whose pages may embed this one */
function contentSecurityPolicy(frameAncestors: readonly string[]): string {
  const ancestors = frameAncestors.length > 0 ? frameAncestors.join(' ') : "'none'";
  return [...STRICT, `frame-ancestors ${ancestors}`].join('; ');
}

export const CONTENT_SECURITY_POLICY = contentSecurityPolicy([]);

/** For files whose name has a hash of their content: they never change. */
const IMMUTABLE = 'public, max-age=31536000, immutable';
/** Cached, but checked each time: it names the files of the version that is deployed. */
export const REVALIDATE = 'no-cache';

/** The errors of `sendFile` for a name that is not that of a file in the folder. Source: the npm package send. */
const missing = z.union([
  // The errors for a name that no file can have, one that leads out of the folder or begins with a dot, and one that no file has.
  z.object({ status: z.union([z.literal(400), z.literal(403), z.literal(404)]) }),
  // The error for the folder itself.
  z.object({ code: z.literal('EISDIR') }),
]);
/** RFC 9110, section 13.1: the file is not the one that the caller's condition names. */
const preconditionFailed = z.object({ status: z.literal(412) });
const FILE_HAS_CHANGED = 'The file is not the one that If-Match or If-Unmodified-Since asks for; leave the header out.';

/** GET /, and GET /embed for other pages to embed. @param folder the page's build @param frameAncestors the origins of those */
export function pageRoute(folder: string, frameAncestors: readonly string[] = []): RequestHandler {
  const policy = contentSecurityPolicy(frameAncestors);
  return (request, response, next) => {
    // Older than the policy, which says it better: it knows no list of origins.
    if (frameAncestors.length > 0) response.removeHeader('X-Frame-Options');
    sendFile(request, response, folder, 'index.html', REVALIDATE, next, policy);
  };
}

export interface PageSettings {
  /** Where producers reach the collector; undefined: the page does not know. */
  readonly collectorUrl: string | undefined;
  /** Origins whose pages may embed this one. */
  readonly frameAncestors: readonly string[];
}

/** GET /page-settings.json: what the page cannot know from its own address. It is told to everybody, as the page is. */
export function pageSettingsRoute({ collectorUrl, frameAncestors }: PageSettings): RequestHandler {
  return (_request, response) => {
    response.set('Cache-Control', REVALIDATE).json({ collectorUrl, frameAncestors });
  };
}

/** GET /assets/{file} */
export function assetRoute(folder: string): RequestHandler<{ file: string }> {
  return (request, response, next) =>
    sendFile(request, response, `${folder}/assets`, request.params.file, IMMUTABLE, next);
}

export function sendFile(
  { path }: { path: string },
  response: Response,
  root: string,
  file: string,
  caching: string,
  next: (error?: unknown) => void,
  policy = CONTENT_SECURITY_POLICY,
) {
  const headers = { 'Cache-Control': caching, 'Content-Security-Policy': policy };
  // The files of the page are small: a Range is ignored, as RFC 9110, section 14.2, allows.
  const options = { root, index: false, cacheControl: false, acceptRanges: false, headers, dotfiles: 'deny' } as const;
  response.sendFile(file, options, (error) => {
    if (!error) return;
    if (response.headersSent) return next(error);
    // The headers of the file, which the error would be sent with.
    for (const name of ['Content-Type', 'ETag', 'Last-Modified']) response.removeHeader(name);
    response.set('Cache-Control', 'private, no-store');
    if (missing.safeParse(error).success) return next(unknownPath(path));
    const hasChanged = preconditionFailed.safeParse(error).success;
    next(hasChanged ? new ApiError(412, 'precondition_failed', FILE_HAS_CHANGED) : error);
  });
}
