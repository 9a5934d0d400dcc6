/** The collector as an Express application. */
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
} from '@meterline/api';
import type { Express } from 'express';
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

export function createApp(dependencies: CollectorDependencies): Express {
  const authenticate = createAuthenticate(dependencies);
  const app = createApplication(dependencies);
  // Reads its body itself, once it knows whose it is.
  app.route('/v0/accounts/:accountId/events').post(eventsRoute({ ...dependencies, authenticate }));
  app.use(readSmallBodies());
  app.route('/v0/accounts/:accountId/events').all(methodNotAllowed('POST'));
  addServiceRoutes(app, { ...dependencies, createDocument: createOpenApiDocument });
  addErrorAnswers(app, dependencies);
  return app;
}
