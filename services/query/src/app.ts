/** The API as an Express application: what it shares with other services, then its routes. */
import type { AccountDirectory, AnswerStamps, ApiKeyStore } from '@meterline/access';
import {
  type ApplicationOptions,
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
import { billingDimensionsEnumRoute, groupByEnumRoute, resourceTypesEnumRoute } from './metrics/enums.js';
import type { KeptAnswers } from './metrics/kept-answers.js';
import { MetricsPages, type ReadCells } from './metrics/pages.js';
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

export function createApp(dependencies: QueryDependencies): Express {
  const { accounts, admission, answers, clock, keys, pageFolder, readCells, shards, stamps, warehouse } = dependencies;
  const authenticate = createAuthenticate(dependencies);
  const cursors = new CursorCodec(dependencies.cursorSecret, clock);
  const pages = new MetricsPages(dependencies);
  const unsent = new UnsentBytes(dependencies.maxUnsentBytes);

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
    .route('/v0/accounts/:accountId/metrics')
    .get(metricsRoute({ admission, answers, authenticate, cursors, pages, stamps, unsent }))
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
    app.route('/page-settings.json').get(pageSettingsRoute(dependencies)).all(methodNotAllowed(READ));
  }
  addErrorAnswers(app, dependencies);
  return app;
}
