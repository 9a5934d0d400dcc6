/** What every HTTP service has in common as an Express application: the middleware of each request, and the routes about the service. */
import compression from 'compression';
import express, { type Express, type RequestHandler } from 'express';
import {
  METADATA_PATH,
  metadataUrl,
  type ProtectedResource,
  resourceMetadataRoute,
} from './auth/protected-resource.js';
import { passFailuresOn } from './direct-route.js';
import { answerError, methodNotAllowed, routeNotFound } from './http/error-answers.js';
import { baseHeaders, crossOrigin, type Observation, watchersOf } from './http/every-request.js';
import { healthRoute, type ReadinessCheck, readinessRoute } from './http/health.js';
import { checkRequestTarget } from './http/request-checks.js';
import { noteInLog, requestIdOf } from './http/request-observation.js';
import { assetRoute } from './http/web-page.js';
import type { OpenApiDocument } from './openapi/model.js';
import { openApiRoute, referenceRoute } from './openapi/route.js';

/** What an HTTP service needs from outside, whatever it answers. */
export interface ApplicationOptions extends Observation {
  /** Web pages of these origins may call the API. */
  readonly corsOrigins: readonly string[];
  /** Whether the process was asked to stop: it answers, but is not ready for more. */
  readonly isStopping: () => boolean;
  /** The folder of the web page's build, which has the reference's look; undefined: the API alone. */
  readonly pageFolder: string | undefined;
  /** What those who need a token are told; undefined: only API keys are accepted. */
  readonly protectedResource: ProtectedResource | undefined;
}

export const READ = 'GET, HEAD';

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

  app.use(passFailuresOn);
  for (const watch of watchersOf(options)) app.use(watch);
  app.param('accountId', (request, _response, next, account: string) => {
    noteInLog(request, { account });
    next();
  });
  const headers = baseHeaders(corsOrigins);
  app.use((request, response, next) => {
    response.setHeaders(headers).setHeader('X-Request-Id', requestIdOf(request));
    next();
  });
  if (corsOrigins.length > 0) app.use(crossOrigin(corsOrigins));
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
