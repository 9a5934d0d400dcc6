/** What every request gets, whether or not Express answers it: those who watch it, and the headers of its answer. */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import cors from 'cors';
import helmet from 'helmet';
import type { Logger } from 'pino';
import type { TrustProxy } from '../environment.js';
import { VERSION_HEADER } from './request-checks.js';
import { requestLog, type Watcher } from './request-observation.js';

export interface Observation {
  readonly log: Logger;
  /** They see every request first and do not answer it: metrics, traces. */
  readonly watchers: readonly Watcher[];
  readonly trustProxy: TrustProxy;
}

/** The log comes first: it sees every answer. */
export function watchersOf({ log, trustProxy, watchers }: Observation): readonly Watcher[] {
  return [requestLog(log, trustProxy), ...watchers];
}

/** What answers pages of other origins. */
export function crossOrigin(corsOrigins: readonly string[]) {
  return cors({
    origin: [...corsOrigins],
    methods: ['GET', 'POST', 'DELETE'],
    exposedHeaders: [
      VERSION_HEADER,
      'ETag',
      'X-Request-Id',
      'Retry-After',
      'RateLimit',
      'RateLimit-Policy',
      'WWW-Authenticate',
    ],
    maxAge: 600,
  });
}

/**
 * Of every answer, besides its request id. Those of helmet do not depend on the request, so it is asked once; and so are those
 * that a request without an origin gets.
 */
export function baseHeaders(corsOrigins: readonly string[]): Map<string, string> {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  // TLS ends in front of this service; only the proxy there knows whether http must become https.
  helmet({ contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } } })(
    response.req,
    response,
    () => undefined,
  );
  if (corsOrigins.length > 0) crossOrigin(corsOrigins)(response.req, response, () => undefined);
  response.setHeader('Cache-Control', 'private, no-store');
  return new Map(Object.entries(response.getHeaders()).map(([name, value]) => [name, String(value)]));
}
