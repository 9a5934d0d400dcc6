/** Builds the Express application of an HTTP service: middleware, shared routes and error responses. */
import compression from 'compression';
import cors from 'cors';
import express, { type Express, type RequestHandler } from 'express';
import helmet from 'helmet';
import type { Logger } from 'pino';
import {
  METADATA_PATH,
  metadataUrl,
  type ProtectedResource,
  resourceMetadataRoute,
} from './auth/protected-resource.js';
import type { TrustProxy } from './environment.js';
import { methodNotAllowed, respondWithError, routeNotFound } from './http/errors.js';
import { healthRoute, type ReadinessCheck, readinessRoute } from './http/health.js';
import { checkRequestTarget, VERSION_HEADER } from './http/request-checks.js';
import { requestLog, type Watcher } from './http/request-observation.js';
import { noteInLog, requestIdOf } from './http/request-record.js';
import { DOCS_ROUTES, openApiRoute } from './openapi/docs.js';
import type { OpenApiDocument } from './openapi/document.js';

export interface ApplicationOptions {
  readonly log: Logger;
  readonly watchers: readonly Watcher[];
  readonly trustProxy: TrustProxy;
  readonly corsOrigins: readonly string[];
  /** Whether the process is stopping. It then still serves requests, but `/readyz` tells load balancers to send no more. */
  readonly isStopping: () => boolean;
  /** Tells clients without a token where to get one. If undefined, the service accepts only API keys. */
  readonly protectedResource: ProtectedResource | undefined;
}

export const READ = 'GET, HEAD';

/**
 * Adds a path that allows only GET and HEAD.
 * @param elsewhere a sentence that the error for other methods ends with, which names the path that supports them
 */
export function addReadRoute<Params>(
  app: Express,
  path: string,
  handler: RequestHandler<Params>,
  elsewhere?: string,
): void {
  app.route(path).get(handler).all(methodNotAllowed(READ, elsewhere));
}

/** Adds the middleware. Its order gives every response, even an error, a log line, a request ID, security headers and CORS headers. */
export function createApplication(
  options: Pick<ApplicationOptions, 'corsOrigins' | 'log' | 'trustProxy' | 'watchers'>,
): Express {
  const { corsOrigins, log, trustProxy, watchers } = options;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.set('query parser', false);
  app.set('trust proxy', trustProxy);

  app.use(requestLog(log), ...watchers);
  app.param('accountId', (request, _response, next, account: string) => {
    noteInLog(request, { account });
    next();
  });
  // Helmet's headers that require https are off. TLS ends at the proxy in front of this service, so only the proxy can decide about https.
  app.use(
    helmet({
      strictTransportSecurity: false,
      contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } },
    }),
  );
  app.use((request, response, next) => {
    response.setHeader('Cache-Control', 'private, no-store').setHeader('X-Request-Id', requestIdOf(request));
    next();
  });
  if (corsOrigins.length > 0) app.use(crossOrigin(corsOrigins));
  app.use(checkRequestTarget);
  app.use(compression());
  return app;
}

function crossOrigin(corsOrigins: readonly string[]): RequestHandler {
  return cors({
    origin: [...corsOrigins],
    methods: ['GET', 'POST', 'PATCH', 'DELETE'],
    exposedHeaders: [
      VERSION_HEADER,
      'ETag',
      'Location',
      'Age',
      'X-Request-Id',
      'Retry-After',
      'RateLimit',
      'RateLimit-Policy',
      'WWW-Authenticate',
    ],
    maxAge: 600,
  });
}

/** The maximum size of a body, except for operations that send events. */
const MAX_BODY_BYTES = 16 * 1024;

/** Reads every body to its end, even if the operation ignores it, so that the connection can be reused. */
export function readSmallBodies(): RequestHandler {
  return express.raw({ type: () => true, limit: MAX_BODY_BYTES, inflate: false });
}

interface ServiceRoutes extends Pick<ApplicationOptions, 'isStopping' | 'protectedResource'> {
  readonly checks: readonly ReadinessCheck[];
  readonly createDocument: () => OpenApiDocument;
}

export function addServiceRoutes(app: Express, routes: ServiceRoutes): void {
  const { checks, createDocument, isStopping, protectedResource } = routes;
  addReadRoute(app, '/healthz', healthRoute);
  addReadRoute(app, '/readyz', readinessRoute(isStopping, checks));
  addReadRoute(app, '/openapi.json', openApiRoute(createDocument));
  addReadRoute(app, METADATA_PATH, resourceMetadataRoute(protectedResource));
  for (const [path, handler] of Object.entries(DOCS_ROUTES)) addReadRoute(app, path, handler);
}

/** Adds the responses for unknown paths and for errors. Call this after all routes are added. */
export function addErrorResponses(
  app: Express,
  { protectedResource }: Pick<ApplicationOptions, 'protectedResource'>,
): void {
  app.use(routeNotFound);
  app.use(respondWithError((request) => metadataUrl(protectedResource, request)));
}
