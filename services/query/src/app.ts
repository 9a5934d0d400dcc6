/** Builds the Express application of the query API. */
import {
  type ApplicationOptions,
  type Authorities,
  addErrorResponses,
  addReadRoute,
  addServiceRoutes,
  assetRoute,
  createApplication,
  createAuthenticate,
  methodNotAllowed,
  notFound,
  orAuthUnavailable,
  type PageSettings,
  pageRoute,
  pageSettingsRoute,
  READ,
  readSmallBodies,
  requireFit,
  responseBudget,
} from '@meterline/api';
import { GROUP_BY_DIMENSIONS } from '@meterline/catalog';
import { remembered, shared } from '@meterline/service';
import type { RedisStatus } from '@meterline/service/access';
import { ClickHouseError, checkConnection, UnusableServerError, type Warehouse } from '@meterline/warehouse';
import type { Express } from 'express';
import {
  accountKeyListRoute,
  accountNamingRoute,
  accountsRoute,
  keyCreationRoute,
  keyListRoute,
  revocationRoute,
  usedAccountsReader,
} from './accounts.js';
import {
  alertChangeRoute,
  alertCreationRoute,
  alertDeletionRoute,
  alertListRoute,
  alertRoute,
  alertTestRoute,
  deliveryListRoute,
  redeliveryRoute,
} from './alerts/routes.js';
import { PriceBooks } from './events/price-books.js';
import { eventsRoute } from './events/route.js';
import type { RouteDependencies } from './http/member.js';
import { CursorCodec } from './http/paging.js';
import { enumRoute, metricsRoute, resourceTypesRoute } from './metrics/route.js';
import { createOpenApiDocument } from './openapi/document.js';
import { viewDeletionRoute, viewListRoute, viewRoute, viewSavingRoute } from './views/routes.js';

export interface QueryDependencies
  extends ApplicationOptions,
    Authorities,
    PageSettings,
    Omit<RouteDependencies, 'authenticate' | 'budget' | 'cursors' | 'registered'> {
  readonly warehouse: Warehouse;
  readonly maxInFlightBytes: number;
  readonly redisStatus: () => Promise<RedisStatus>;
  readonly cursorSecret: string;
  /** The folder of the built web page. Undefined if the service has no page. */
  readonly pageFolder: string | undefined;
}

const ACCOUNT = '/v0/accounts/:accountId';
const ALERTS = `${ACCOUNT}/alerts`;
const ALERT = `${ALERTS}/:alertId`;
const VIEWS = `${ACCOUNT}/views`;
const KEYS = '/v0/service_accounts/:clientId/api_keys';

/** Listing 10,000 accounts takes half a second, and clients request the list in many pages. The list is therefore cached for this time. */
const REGISTERED_MAX_AGE_MS = 5_000;
const WHILE_REDIS_IS_DOWN =
  'requests with an API key get 503, and so do requests for accounts, keys and alerts; other requests with a token work';
const FULL_REDIS = 'is full: API keys cannot be created or revoked, and producers cannot add events';

/** Always throws. ClickHouse's own message names users and statements, so it goes only to the log. */
function throwUnusable(error: unknown): never {
  if (error instanceof UnusableServerError) requireFit(`cannot be used: ${error.message}`);
  if (error instanceof ClickHouseError) requireFit(`returned error ${error.code}: see the log`, error);
  throw error;
}

export function createApp(dependencies: QueryDependencies): Express {
  const { clock, cursorSecret, frameAncestors, log, maxInFlightBytes, pageFolder, warehouse } = dependencies;
  const routes: RouteDependencies = {
    ...dependencies,
    authenticate: createAuthenticate(dependencies),
    budget: responseBudget(maxInFlightBytes),
    cursors: new CursorCodec(cursorSecret, clock),
    registered: remembered(clock, REGISTERED_MAX_AGE_MS, () => orAuthUnavailable(dependencies.accounts.list())),
  };
  const app = createApplication(dependencies);
  const elsewhere = 'Send events to the collector: POST /v0/events at the address of the collector.';
  // Used before the body parser, whose errors for large and compressed bodies would hide this error.
  app.use('/v0/events', () => {
    throw notFound(`There is no /v0/events here; /docs lists the operations of this service. ${elsewhere}`);
  });
  app.use(readSmallBodies());
  addServiceRoutes(app, {
    ...dependencies,
    createDocument: createOpenApiDocument,
    checks: [
      // Concurrent requests share one check, so that they cause only one statement.
      { server: 'ClickHouse', check: shared(() => checkConnection(warehouse).catch(throwUnusable)) },
      {
        server: 'Redis',
        check: async () => {
          const { problem, isFull } = await dependencies.redisStatus();
          requireFit(problem);
          return isFull ? FULL_REDIS : undefined;
        },
        whileDown: dependencies.tokens && WHILE_REDIS_IS_DOWN,
      },
    ],
  });
  addReadRoute(app, '/v0/accounts', accountsRoute(routes, usedAccountsReader(clock, log, warehouse)));
  app.route(ACCOUNT).put(accountNamingRoute(routes)).all(methodNotAllowed('PUT'));
  addReadRoute(app, `${ACCOUNT}/api_keys`, accountKeyListRoute(routes));
  addReadRoute(app, '/v0/metrics', metricsRoute(routes));
  addReadRoute(app, `${ACCOUNT}/metrics`, metricsRoute(routes));
  addReadRoute(
    app,
    `${ACCOUNT}/metrics/enums/group-by`,
    enumRoute(routes, () => GROUP_BY_DIMENSIONS),
  );
  addReadRoute(app, `${ACCOUNT}/metrics/enums/resource-types`, resourceTypesRoute(routes));
  const books = new PriceBooks(clock, warehouse);
  const billingDimensions = async (accountId: string) =>
    (await books.newest()).billingDimensions(accountId, clock().getTime());
  addReadRoute(app, `${ACCOUNT}/metrics/enums/billing-dimensions`, enumRoute(routes, billingDimensions));
  addReadRoute(app, `${ACCOUNT}/events`, eventsRoute(routes, books), elsewhere);
  app
    .route(KEYS)
    .get(keyListRoute(routes))
    .post(keyCreationRoute(routes))
    .all(methodNotAllowed(`${READ}, POST`));
  app.route(`${KEYS}/:apiKeyId`).delete(revocationRoute(routes)).all(methodNotAllowed('DELETE'));
  app
    .route(ALERTS)
    .get(alertListRoute(routes))
    .post(alertCreationRoute(routes))
    .all(methodNotAllowed(`${READ}, POST`));
  app
    .route(ALERT)
    .get(alertRoute(routes))
    .patch(alertChangeRoute(routes))
    .delete(alertDeletionRoute(routes))
    .all(methodNotAllowed(`${READ}, PATCH, DELETE`));
  app.route(`${ALERT}/test`).post(alertTestRoute(routes)).all(methodNotAllowed('POST'));
  addReadRoute(app, `${ALERT}/deliveries`, deliveryListRoute(routes));
  app.route(`${ALERT}/deliveries/:deliveryId/redeliver`).post(redeliveryRoute(routes)).all(methodNotAllowed('POST'));
  addReadRoute(app, VIEWS, viewListRoute(routes));
  app
    .route(`${VIEWS}/:name`)
    .get(viewRoute(routes))
    .put(viewSavingRoute(routes))
    .delete(viewDeletionRoute(routes))
    .all(methodNotAllowed(`${READ}, PUT, DELETE`));
  if (pageFolder !== undefined) {
    addReadRoute(app, '/assets/:file', assetRoute(pageFolder));
    addReadRoute(app, '/', pageRoute(pageFolder));
    addReadRoute(app, '/embed', pageRoute(pageFolder, frameAncestors));
    addReadRoute(app, '/page-settings.json', pageSettingsRoute(dependencies));
  }
  addErrorResponses(app, dependencies);
  return app;
}
