/** What every HTTP service has in common as an Express application: the middleware of each request, and the routes about the service. */
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
import { noteInLog, requestIdOf, requestLog, type Watcher } from './http/request-observation.js';
import { DOCS_ROUTES, openApiRoute } from './openapi/docs.js';
import type { OpenApiDocument } from './openapi/document.js';

/** What an HTTP service needs from outside, whatever it answers. */
export interface ApplicationOptions {
  readonly log: Logger;
  /** They see every request first and do not answer it: metrics, traces. */
  readonly watchers: readonly Watcher[];
  readonly trustProxy: TrustProxy;
  /** Web pages of these origins may call the API. */
  readonly corsOrigins: readonly string[];
  /** Whether the process was asked to stop: it answers, but is not ready for more. */
  readonly isStopping: () => boolean;
  /** What those who need a token are told; undefined: only API keys are accepted. */
  readonly protectedResource: ProtectedResource | undefined;
}

export const READ = 'GET, HEAD';

/** A path that can be read and nothing else. @param elsewhere a sentence that says where another method is allowed */
export function addReadRoute<Params>(
  app: Express,
  path: string,
  handler: RequestHandler<Params>,
  elsewhere?: string,
): void {
  app.route(path).get(handler).all(methodNotAllowed(READ, elsewhere));
}

/** The middleware, in this order, so that every failure is logged, has its request id and the security headers, and can be read cross-origin. */
export function createApplication(options: ApplicationOptions): Express {
  const { corsOrigins, trustProxy } = options;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.set('query parser', false);
  app.set('trust proxy', trustProxy);

  // The log comes first: it sees every answer.
  app.use(requestLog(options.log), ...options.watchers);
  app.param('accountId', (request, _response, next, account: string) => {
    noteInLog(request, { account });
    next();
  });
  // TLS ends in front of this service; only the proxy there knows whether http must become https.
  app.use(helmet({ contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } } }));
  app.use((request, response, next) => {
    response.setHeader('Cache-Control', 'private, no-store').setHeader('X-Request-Id', requestIdOf(request));
    next();
  });
  if (corsOrigins.length > 0) app.use(crossOrigin(corsOrigins));
  app.use(checkRequestTarget);
  app.use(compression());
  return app;
}

/** What answers pages of other origins. */
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

/** Of requests to operations that take little or nothing. */
const MAX_BODY_BYTES = 16 * 1024;

/** Every body is read to its end, so that the connection can be used again; an operation that takes none ignores it. */
export function readSmallBodies(): RequestHandler {
  return express.raw({ type: () => true, limit: MAX_BODY_BYTES, inflate: false });
}

export interface ServiceRoutes extends Pick<ApplicationOptions, 'isStopping' | 'protectedResource'> {
  /** The servers that it depends on. */
  readonly checks: readonly ReadinessCheck[];
  readonly createDocument: () => OpenApiDocument;
}

/** Health, the reference, and where tokens come from. */
export function addServiceRoutes(app: Express, routes: ServiceRoutes): void {
  const { checks, createDocument, isStopping, protectedResource } = routes;
  addReadRoute(app, '/healthz', healthRoute);
  addReadRoute(app, '/readyz', readinessRoute(isStopping, checks));
  addReadRoute(app, '/openapi.json', openApiRoute(createDocument));
  addReadRoute(app, METADATA_PATH, resourceMetadataRoute(protectedResource));
  for (const [path, handler] of Object.entries(DOCS_ROUTES)) addReadRoute(app, path, handler);
}

/** After all routes: what has none, and what has failed. */
export function addErrorResponses(
  app: Express,
  { protectedResource }: Pick<ApplicationOptions, 'protectedResource'>,
): void {
  app.use(routeNotFound);
  app.use(respondWithError((request) => metadataUrl(protectedResource, request)));
}
