/** The API: an Express application, what it shares with other services and then its routes; and before it the one that matters. */
import type { RequestListener } from 'node:http';
import type { AccountDirectory, AnswerStamps, ApiKeyStore } from '@meterline/access';
import {
  type AccountHandler,
  type ApplicationOptions,
  type Authenticate,
  addErrorAnswers,
  addServiceRoutes,
  createApplication,
  createAuthenticate,
  fullRedis,
  methodNotAllowed,
  pageRoute,
  pageSettingsRoute,
  READ,
  readSmallBodies,
  type TokenVerifier,
  UnsentBytes,
  withDirectRoute,
} from '@meterline/api';
import { shared } from '@meterline/service';
import { checkConnection, type Warehouse } from '@meterline/warehouse';
import type { Express } from 'express';
import { accountsRoute } from './accounts/route.js';
import type { Admission } from './admission/admission.js';
import { keyCreationRoute } from './api-keys/creation.js';
import { keyListRoute } from './api-keys/list.js';
import { revocationRoute } from './api-keys/revocation.js';
import { eventsRoute } from './events/route.js';
import { CursorCodec } from './http/cursor-codec.js';
import { takesGzip } from './metrics/answer-body.js';
import { billingDimensionsEnumRoute, groupByEnumRoute, resourceTypesEnumRoute } from './metrics/enums.js';
import type { KeptAnswers } from './metrics/kept-answers.js';
import { MetricsPages } from './metrics/pages.js';
import type { ReadCells } from './metrics/readable-cells.js';
import { metricsRoute } from './metrics/route.js';
import { createOpenApiDocument } from './openapi/document.js';

/** Everything the API needs from outside. */
export interface QueryDependencies extends ApplicationOptions {
  readonly warehouse: Warehouse;
  /** Which cells may be read; asked before each question. */
  readonly readCells: ReadCells;
  /** How many ClickHouse has; 1 by default. */
  readonly shards?: number;
  readonly answers: KeptAnswers;
  /** By which kept answers are known to be the answers still. */
  readonly stamps: Pick<AnswerStamps, 'read'>;
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
  /** Rejects when Redis does not answer. */
  readonly pingRedis: () => Promise<unknown>;
  readonly isRedisFull: () => Promise<boolean>;
  readonly cursorSecret: string;
  /** Where producers reach the collector; undefined: the page does not know. */
  readonly collectorUrl: string | undefined;
  readonly clock: () => Date;
}

const METRICS = '/v0/accounts/:accountId/metrics';

/** What is percent-encoded there is ASCII, so it is UTF-8; a name that is not goes through Express. */
const USUAL_METRICS =
  /^\/v0\/accounts\/([A-Za-z0-9._~-]{1,256})\/metrics(?:\?(?:[!-$&-~]|%[0-7][0-9A-Fa-f]){0,4096})?$/;

export function createApp(dependencies: QueryDependencies): RequestListener {
  const parts = createParts(dependencies);
  return withDirectRoute(createRoutes(dependencies, parts), dependencies, {
    method: 'GET',
    target: USUAL_METRICS,
    route: METRICS,
    handle: parts.metrics,
    // Other codings are the application's.
    isUsual: ({ headers }) => headers['accept-encoding'] === undefined || takesGzip(headers),
  });
}

/** What the routes have in common, and the handler that is not only theirs. */
interface Parts {
  readonly authenticate: Authenticate;
  readonly cursors: CursorCodec;
  readonly metrics: AccountHandler;
  readonly unsent: UnsentBytes;
}

function createParts(dependencies: QueryDependencies): Parts {
  const authenticate = createAuthenticate(dependencies);
  const cursors = new CursorCodec(dependencies.cursorSecret, dependencies.clock);
  const pages = new MetricsPages(dependencies);
  const unsent = new UnsentBytes(dependencies.maxUnsentBytes);
  const metrics = metricsRoute({ ...dependencies, authenticate, cursors, pages, unsent });
  return { authenticate, cursors, metrics, unsent };
}

/** All routes, as an Express application. */
export function createRoutes(dependencies: QueryDependencies, parts = createParts(dependencies)): Express {
  const { accounts, admission, clock, keys, pageFolder, readCells, shards, warehouse } = dependencies;
  const { authenticate, cursors, metrics, unsent } = parts;
  const app = createApplication(dependencies);
  app.use(readSmallBodies());
  addServiceRoutes(app, {
    ...dependencies,
    createDocument: createOpenApiDocument,
    checks: [
      // One statement at a time, however many ask.
      { server: 'ClickHouse', check: shared(() => checkConnection(warehouse)) },
      { server: 'Redis', check: dependencies.pingRedis, limit: fullRedis(dependencies.isRedisFull) },
    ],
  });
  app
    .route('/v0/accounts')
    .get(accountsRoute({ accounts, admission, authenticate, cursors }))
    .all(methodNotAllowed(READ));
  app
    .route(METRICS)
    .get((request, response) => metrics(request, response, request.params.accountId))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/metrics/enums/group-by')
    .get(groupByEnumRoute({ admission, authenticate }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/metrics/enums/resource-types')
    .get(resourceTypesEnumRoute({ admission, authenticate, readCells, shards }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/metrics/enums/billing-dimensions')
    .get(billingDimensionsEnumRoute({ admission, authenticate }))
    .all(methodNotAllowed(READ));
  app
    .route('/v0/accounts/:accountId/events')
    .get(eventsRoute({ admission, authenticate, cursors, shards, unsent }))
    .all(methodNotAllowed(READ, 'Events are sent to the collector, which has an address of its own.'));
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
    app.route('/page-settings.json').get(pageSettingsRoute(dependencies)).all(methodNotAllowed(READ));
  }
  addErrorAnswers(app, dependencies);
  return app;
}
