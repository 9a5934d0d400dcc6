/** The API as an Express application: what every request passes through, then the routes. */
import { checkConnection } from '@meterline/warehouse';
import compression from 'compression';
import cors from 'cors';
import express, { type Express } from 'express';
import helmet from 'helmet';
import { createAuthenticate } from './auth/authenticate.js';
import { VERSION_HEADER } from './contracts/version.js';
import type { QueryDependencies } from './dependencies.js';
import { answerError, methodNotAllowed, routeNotFound } from './http/error-responses.js';
import { checkRequestTarget } from './http/request-checks.js';
import { requestIdOf } from './http/request-id.js';
import { noteInLog, requestLog } from './http/request-log.js';
import { PagedMetrics } from './metrics/paged-metrics.js';
import { CursorCodec } from './paging/cursor-codec.js';
import { accountsRoute } from './routes/accounts.js';
import { revocationRoute } from './routes/api-keys.js';
import { healthRoute, readinessRoute } from './routes/health.js';
import { metricsRoute } from './routes/metrics.js';
import { groupByEnumRoute, resourceTypesEnumRoute } from './routes/metrics-enums.js';
import { assetRoute, pageRoute } from './routes/page.js';
import { openApiRoute, referenceRoute } from './routes/reference.js';

const MAX_BODY_BYTES = 16 * 1024;
const READ = 'GET, HEAD';

export function createApp(dependencies: QueryDependencies): Express {
  const { accounts, clock, keys, maxStoredGroups, readSealed, warehouse } = dependencies;
  const authenticate = createAuthenticate(dependencies);
  const cursors = new CursorCodec(dependencies.cursorSecret, clock);

  const metrics = new PagedMetrics({ warehouse, readSealed, clock, maxStoredGroups });
  const app = express();
  configure(app, dependencies);

  app.route('/healthz').get(healthRoute).all(methodNotAllowed(READ));
  app
    .route('/readyz')
    .get(
      readinessRoute([
        { server: 'ClickHouse', check: () => checkConnection(warehouse) },
        { server: 'Redis', check: dependencies.pingRedis },
      ]),
    )
    .all(methodNotAllowed(READ));
  app.route('/openapi.json').get(openApiRoute()).all(methodNotAllowed(READ));
  app.route('/docs').get(referenceRoute()).all(methodNotAllowed(READ));
  app.route('/v0/accounts').get(accountsRoute({ accounts, authenticate, clock, cursors })).all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/metrics')
    .get(metricsRoute({ authenticate, cursors, metrics }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/metrics/enums/group-by')
    .get(groupByEnumRoute(authenticate))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/metrics/enums/resource-types')
    .get(resourceTypesEnumRoute({ authenticate, readSealed, warehouse }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/service_accounts/:clientId/api_keys/:apiKeyId')
    .delete(revocationRoute({ authenticate, clock, keys }))
    .all(methodNotAllowed('DELETE'));
  if (dependencies.pageFolder !== undefined) {
    app.route('/').get(pageRoute(dependencies.pageFolder)).all(methodNotAllowed(READ));
    app.route('/assets/:file').get(assetRoute(dependencies.pageFolder)).all(methodNotAllowed(READ));
  }

  app.use(routeNotFound);
  app.use(answerError);
  return app;
}

/** In this order, so that whatever fails is logged, carries its id and the security headers, and may be read cross-origin. */
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
  // TLS ends before this service; only what stands there knows whether http must become https.
  app.use(helmet({ contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } } }));
  if (corsOrigins.length > 0) {
    app.use(
      cors({
        origin: [...corsOrigins],
        methods: ['GET', 'DELETE'],
        exposedHeaders: [VERSION_HEADER, 'X-Request-Id', 'Retry-After', 'WWW-Authenticate'],
        maxAge: 600,
      }),
    );
  }
  app.use(checkRequestTarget);
  app.use(compression());
  // No operation has a body: one is read to the end, so that the connection can be used again, and then ignored.
  app.use(express.raw({ type: () => true, limit: MAX_BODY_BYTES, inflate: false }));
}
