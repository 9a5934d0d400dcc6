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
import { answerError, methodNotAllowed, routeNotFound } from './http/error-answers.js';
import { healthRoute, type ReadinessCheck, readinessRoute } from './http/health.js';
import { checkRequestTarget, VERSION_HEADER } from './http/request-checks.js';
import { noteInLog, requestIdOf, requestLog } from './http/request-observation.js';
import { assetRoute } from './http/web-page.js';
import type { OpenApiDocument } from './openapi/model.js';
import { openApiRoute, referenceRoute } from './openapi/route.js';

/** What an HTTP service needs from outside, whatever it answers. */
export interface ApplicationOptions {
  readonly log: Logger;
  /** They see every request first and do not answer it: metrics, traces. */
  readonly watchers: readonly RequestHandler[];
  /** Web pages of these origins may call the API. */
  readonly corsOrigins: readonly string[];
  readonly trustProxy: TrustProxy;
  /** Whether the process was asked to stop: it answers, but is not ready for more. */
  readonly isStopping: () => boolean;
  /** The folder of the web page's build, which has the reference's look; undefined: the API alone. */
  readonly pageFolder: string | undefined;
  /** What those who need a token are told; undefined: only API keys are accepted. */
  readonly protectedResource: ProtectedResource | undefined;
}

export const READ = 'GET, HEAD';

/** The middleware, in this order, so that every failure is logged, has its request id and the security headers, and can be read cross-origin. */
export function createApplication({ corsOrigins, log, trustProxy, watchers }: ApplicationOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.set('query parser', false);
  app.set('trust proxy', trustProxy);

  app.use(requestLog(log));
  for (const watch of watchers) app.use(watch);
  app.param('accountId', (request, _response, next, account: string) => {
    noteInLog(request, { account });
    next();
  });
  app.use((request, response, next) => {
    response.set({ 'X-Request-Id': requestIdOf(request), 'Cache-Control': 'private, no-store' });
    next();
  });
  // TLS ends in front of this service; only the proxy there knows whether http must become https.
  app.use(helmet({ contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } } }));
  if (corsOrigins.length > 0) {
    app.use(
      cors({
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
      }),
    );
  }
  app.use(checkRequestTarget);
  app.use(compression());
  return app;
}

/** Of requests to operations that take little or nothing. */
const MAX_BODY_BYTES = 16 * 1024;

/** Every body is read to its end, so that the connection can be used again; an operation that takes none ignores it. */
export function readSmallBodies(): RequestHandler {
  return express.raw({ type: () => true, limit: MAX_BODY_BYTES, inflate: false });
}

export interface ServiceRoutes extends Pick<ApplicationOptions, 'isStopping' | 'pageFolder' | 'protectedResource'> {
  /** The servers that it depends on. */
  readonly checks: readonly ReadinessCheck[];
  readonly createDocument: () => OpenApiDocument;
}

/** Health, the reference, and where tokens come from. */
export function addServiceRoutes(app: Express, routes: ServiceRoutes): void {
  const { checks, createDocument, isStopping, pageFolder, protectedResource } = routes;
  const answers: Readonly<Record<string, RequestHandler>> = {
    '/healthz': healthRoute,
    '/readyz': readinessRoute(isStopping, checks),
    '/openapi.json': openApiRoute(createDocument),
    '/docs': referenceRoute(createDocument, pageFolder),
    [METADATA_PATH]: resourceMetadataRoute(protectedResource),
  };
  for (const [path, answer] of Object.entries(answers)) app.route(path).get(answer).all(methodNotAllowed(READ));
  if (pageFolder !== undefined) app.route('/assets/:file').get(assetRoute(pageFolder)).all(methodNotAllowed(READ));
}

/** After all routes: what has none, and what has failed. */
export function addErrorAnswers(
  app: Express,
  { protectedResource }: Pick<ApplicationOptions, 'protectedResource'>,
): void {
  app.use(routeNotFound);
  app.use(answerError((request) => metadataUrl(protectedResource, request)));
}
