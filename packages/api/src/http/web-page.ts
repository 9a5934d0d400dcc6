/** Serves the static files of the web page, which packages/dashboard builds. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import { unknownPath } from './errors.js';

/** Allows no content from other origins, no inline scripts or styles, and no eval. */
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

function contentSecurityPolicy(frameAncestors: readonly string[]): string {
  const ancestors = frameAncestors.length > 0 ? frameAncestors.join(' ') : "'none'";
  return [...STRICT, `frame-ancestors ${ancestors}`].join('; ');
}

export const CONTENT_SECURITY_POLICY = contentSecurityPolicy([]);

const IMMUTABLE = 'public, max-age=31536000, immutable';
/** Browsers cache the page but revalidate it at each use, because the page names the files of the deployed version. */
export const REVALIDATE = 'no-cache';

/** The service ignores the header Range, as RFC 9110, section 14.2, allows, because the files are small. Each route sets Cache-Control itself. */
const FILE_OPTIONS = { index: false, cacheControl: false, acceptRanges: false } as const;

/** Returns the folder if it contains the built page. Otherwise, returns undefined, and the service runs without a page. */
export function builtPage(folder: string, log: Logger): string | undefined {
  if (existsSync(join(folder, 'index.html'))) return folder;
  log.warn({ event: 'page_missing', folder }, 'the web page is not built; the service runs without it');
  return undefined;
}

/** Serves the page at `/`, and at `/embed` for display inside other pages. @param frameAncestors origins whose pages may embed this page */
export function pageRoute(folder: string, frameAncestors: readonly string[] = []): RequestHandler {
  const serve = fileRoute(folder, 'index.html', contentSecurityPolicy(frameAncestors));
  return (request, response, next) => {
    // The older header X-Frame-Options cannot list origins, so only the content security policy is sent.
    if (frameAncestors.length > 0) response.removeHeader('X-Frame-Options');
    return serve(request, response, next);
  };
}

export interface PageSettings {
  /** The address to which producers send events. If undefined, the page does not know the address. */
  readonly collectorUrl: string | undefined;
  readonly frameAncestors: readonly string[];
}

/** Serves GET /page-settings.json: settings that the page cannot derive from its own address. They are public, as is the page. */
export function pageSettingsRoute({ collectorUrl, frameAncestors }: PageSettings): RequestHandler {
  return (_request, response) => {
    response.set('Cache-Control', REVALIDATE).json({ collectorUrl, frameAncestors });
  };
}

/** Matches file names. Rejects directories, hidden files, and names that lead out of the folder. */
const ASSET_NAME = /^\w[\w.-]*$/;

export function assetRoute(folder: string): RequestHandler<{ file: string }> {
  const headers = { 'Cache-Control': IMMUTABLE, 'Content-Security-Policy': CONTENT_SECURITY_POLICY };
  return ({ params: { file }, path }, response) => {
    if (!ASSET_NAME.test(file)) throw unknownPath(path);
    response.sendFile(file, { ...FILE_OPTIONS, root: join(folder, 'assets'), headers });
  };
}

export function fileRoute(root: string, file: string, policy = CONTENT_SECURITY_POLICY): RequestHandler {
  const headers = { 'Cache-Control': REVALIDATE, 'Content-Security-Policy': policy };
  return (_request, response) => response.sendFile(file, { ...FILE_OPTIONS, root, headers });
}
