/** The API as an Express application: the middleware of every request, then the routes. */
import type { AccountDirectory, ApiKeyStore } from '@meterline/access';
import { shared } from '@meterline/service';
import { checkConnection, type Warehouse } from '@meterline/warehouse';
import compression from 'compression';
import cors from 'cors';
import express, { type Express, type RequestHandler } from 'express';
import helmet from 'helmet';
import type { Logger } from 'pino';
import { accountsRoute } from './accounts/route.js';
import type { Admission } from './admission/admission.js';
import { keyCreationRoute } from './api-keys/creation.js';
import { keyListRoute } from './api-keys/list.js';
import { revocationRoute } from './api-keys/revocation.js';
import { createAuthenticate } from './auth/authenticate.js';
import {
  METADATA_PATH,
  metadataUrl,
  type ProtectedResource,
  resourceMetadataRoute,
} from './auth/protected-resource.js';
import type { TokenVerifier } from './auth/token-verifier.js';
import type { TrustProxy } from './env.js';
import { eventsRoute } from './events/route.js';
import { CursorCodec } from './http/cursor-codec.js';
import { answerError, methodNotAllowed, routeNotFound } from './http/error-answers.js';
import { fullRedis, healthRoute, readinessRoute } from './http/health.js';
import { checkRequestTarget, VERSION_HEADER } from './http/request-checks.js';
import { noteInLog, requestIdOf, requestLog } from './http/request-observation.js';
import { UnsentBytes } from './http/unread-answers.js';
import { assetRoute, pageRoute } from './http/web-page.js';
import { billingDimensionsEnumRoute, groupByEnumRoute, resourceTypesEnumRoute } from './metrics/enums.js';
import { MetricsPages, type ReadSealed } from './metrics/pages.js';
import { metricsRoute } from './metrics/route.js';
import { openApiRoute, referenceRoute } from './openapi/route.js';

const MAX_BODY_BYTES = 16 * 1024;
const READ = 'GET, HEAD';

/** Everything the API needs from outside. */
export interface QueryDependencies {
  readonly warehouse: Warehouse;
  /** Which cells may be read; asked before each question. */
  readonly readSealed: ReadSealed;
  /** Who may ask how often, and how many statements at once. */
  readonly admission: Admission;
  /** The most groups that may be stored of one account's answers in 24 hours. */
  readonly maxStoredGroups: number;
  /** Bytes of answers that may be computed and not sent yet. */
  readonly maxUnsentBytes: number;
  readonly keys: ApiKeyStore;
  readonly accounts: AccountDirectory;
  /** Undefined: only API keys are accepted. */
  readonly tokens: TokenVerifier | undefined;
  /** What those who need a token are told; undefined with `tokens`. */
  readonly protectedResource: ProtectedResource | undefined;
  /** Rejects when Redis does not answer. */
  readonly pingRedis: () => Promise<unknown>;
  readonly isRedisFull: () => Promise<boolean>;
  /** Whether the process was asked to stop: it answers, but is not ready for more. */
  readonly isStopping: () => boolean;
  readonly cursorSecret: string;
  readonly clock: () => Date;
  readonly log: Logger;
  /** They see every request first and do not answer it: metrics, traces. */
  readonly watchers: readonly RequestHandler[];
  /** Web pages of these origins may call the API. */
  readonly corsOrigins: readonly string[];
  readonly trustProxy: TrustProxy;
  /** The folder of the web page's build; undefined: the API alone. */
  readonly pageFolder: string | undefined;
}

export function createApp(dependencies: QueryDependencies): Express {
  const { accounts, admission, clock, keys, pageFolder, protectedResource, readSealed, warehouse } = dependencies;
  const authenticate = createAuthenticate(dependencies);
  const cursors = new CursorCodec(dependencies.cursorSecret, clock);
  const pages = new MetricsPages(dependencies);
  const unsent = new UnsentBytes(dependencies.maxUnsentBytes);

  const app = express();
  configure(app, dependencies);

  app.route('/healthz').get(healthRoute).all(methodNotAllowed(READ));
  app
    .route('/readyz')
    .get(
      readinessRoute(dependencies.isStopping, [
        // One statement at a time, however many ask.
        { server: 'ClickHouse', check: shared(() => checkConnection(warehouse)) },
        { server: 'Redis', check: dependencies.pingRedis, limit: fullRedis(dependencies.isRedisFull) },
      ]),
    )
    .all(methodNotAllowed(READ));
  app.route('/openapi.json').get(openApiRoute()).all(methodNotAllowed(READ));
  app.route('/docs').get(referenceRoute(pageFolder)).all(methodNotAllowed(READ));
  app.route(METADATA_PATH).get(resourceMetadataRoute(protectedResource)).all(methodNotAllowed(READ));
  app
    .route('/v0/accounts')
    .get(accountsRoute({ accounts, admission, authenticate, cursors }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/metrics')
    .get(metricsRoute({ admission, authenticate, cursors, pages, unsent }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/metrics/enums/group-by')
    .get(groupByEnumRoute({ admission, authenticate }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/metrics/enums/resource-types')
    .get(resourceTypesEnumRoute({ admission, authenticate, readSealed }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/metrics/enums/billing-dimensions')
    .get(billingDimensionsEnumRoute({ admission, authenticate }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/events')
    .get(eventsRoute({ admission, authenticate, cursors, unsent }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/service_accounts/:clientId/api_keys')
    .get(keyListRoute({ admission, authenticate, cursors, keys }))
    .post(keyCreationRoute({ admission, authenticate, clock, keys }))
    .all(methodNotAllowed(`${READ}, POST`));
  app
    .route('/v0/service_accounts/:clientId/api_keys/:apiKeyId')
    .delete(revocationRoute({ authenticate, clock, keys }))
    .all(methodNotAllowed('DELETE'));
  if (pageFolder !== undefined) {
    app.route('/').get(pageRoute(pageFolder)).all(methodNotAllowed(READ));
    app.route('/assets/:file').get(assetRoute(pageFolder)).all(methodNotAllowed(READ));
  }

  app.use(routeNotFound);
  app.use(answerError((request) => metadataUrl(protectedResource, request)));
  return app;
}

/** In this order, so that every failure is logged, has its request id and the security headers, and can be read cross-origin. */
function configure(app: Express, { corsOrigins, log, trustProxy, watchers }: QueryDependencies): void {
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
  // Every body is read to its end, so that the connection can be used again; an operation that takes none ignores it.
  app.use(express.raw({ type: () => true, limit: MAX_BODY_BYTES, inflate: false }));
}
