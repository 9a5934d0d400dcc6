/** The collector: an Express application, and before it the route that takes events. */
import type { RequestListener } from 'node:http';
import type { ApiKeyStore } from '@meterline/access';
import {
  type ApplicationOptions,
  addErrorAnswers,
  addServiceRoutes,
  createApplication,
  createAuthenticate,
  methodNotAllowed,
  type RateGate,
  type ReadinessCheck,
  readSmallBodies,
  type TokenVerifier,
  withDirectRoute,
} from '@meterline/api';
import { type EventsRouteDependencies, eventsRoute } from './events/route.js';
import { createOpenApiDocument } from './openapi/document.js';

/** Everything the service needs from outside. */
export interface CollectorDependencies
  extends ApplicationOptions,
    Pick<EventsRouteDependencies, 'book' | 'bytes' | 'clock' | 'metrics' | 'store'> {
  readonly gate: RateGate;
  readonly keys: ApiKeyStore;
  /** Undefined: only API keys are accepted. */
  readonly tokens: TokenVerifier | undefined;
  readonly checks: readonly ReadinessCheck[];
}

const EVENTS = '/v0/accounts/:accountId/events';

export function createApp(dependencies: CollectorDependencies): RequestListener {
  const handle = eventsRoute({ ...dependencies, authenticate: createAuthenticate(dependencies) });
  const app = createApplication(dependencies);
  // Reads its body itself, once it knows whose it is.
  app.route(EVENTS).post((request, response) => handle(request, response, request.params.accountId));
  app.use(readSmallBodies());
  app
    .route(EVENTS)
    .all(methodNotAllowed('POST', 'Events are read from the query API, which has an address of its own.'));
  addServiceRoutes(app, { ...dependencies, createDocument: createOpenApiDocument });
  addErrorAnswers(app, dependencies);
  const target = /^\/v0\/accounts\/([A-Za-z0-9._~-]{1,256})\/events$/;
  return withDirectRoute(app, dependencies, { method: 'POST', target, route: EVENTS, handle });
}
