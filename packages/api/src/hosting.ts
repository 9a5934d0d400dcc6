/** What every HTTP service has in common: its Express application, its connection to Redis, its ports, its page, its start and its end. */
import { existsSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import {
  connectRedis,
  Outage,
  onceAMinute,
  openAdminServer,
  type processVariables,
  type Service,
  STOP_DEADLINE_MS,
  shared,
} from '@meterline/service';
import {
  type AccountDirectory,
  ApiKeyStore,
  createRedisClient,
  moreInformative,
  type OnMalformedKey,
  REDIS_PREFIX,
  type RedisClient,
  type RedisStatus,
  readRedisStatus,
} from '@meterline/service/access';
import { createRegistry } from '@meterline/service/metrics';
import type { Tracing } from '@meterline/service/tracing';
import compression from 'compression';
import cors from 'cors';
import express, { type Express, type RequestHandler } from 'express';
import helmet from 'helmet';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { z } from 'zod';
import { RateLimiter, type RefusalObserver, refusalCounter } from './admission/rate-limits.js';
import type { Authorities } from './auth/authenticate.js';
import {
  METADATA_PATH,
  metadataUrl,
  type ProtectedResource,
  resourceMetadataRoute,
} from './auth/protected-resource.js';
import { createTokenVerifier } from './auth/tokens.js';
import { type httpVariables, rateLimits, type TrustProxy, type WithTokens } from './environment.js';
import { methodNotAllowed, respondWithError, routeNotFound } from './http/errors.js';
import { healthRoute, type ReadinessCheck, readinessRoute } from './http/health.js';
import { checkRequestTarget, VERSION_HEADER } from './http/request-checks.js';
import { requestLog, requestMetrics, requestSpans, type Watcher } from './http/request-observation.js';
import { noteInLog, requestIdOf } from './http/request-record.js';
import { DOCS_ROUTES, openApiRoute } from './openapi/docs.js';
import type { OpenApiDocument } from './openapi/document.js';
import { startServer } from './server.js';

const TIMEOUT_MS = 2_000;
const MAX_RECONNECT_DELAY_MS = 1_000;

/** The variables of every such service. */
type HostEnv = WithTokens<z.output<z.ZodObject<typeof httpVariables>>> &
  z.output<z.ZodObject<typeof processVariables>> &
  Parameters<typeof rateLimits>[0] & { readonly PORT: number };

interface HostOptions {
  readonly name: 'query' | 'collector';
  readonly log: Logger;
  readonly tracing: Tracing;
  /** What follows while Redis is away, for the log. */
  readonly outage: string;
}

/** What every such service has. */
interface Host extends ApplicationOptions, Authorities {
  readonly registry: Registry;
  readonly redis: RedisClient;
  /** Rejects with the reason if Redis lets this process in no more. Callers at the same time share one reading. */
  readonly redisStatus: () => Promise<RedisStatus>;
  readonly accounts: AccountDirectory;
  readonly rates: RateLimiter;
  readonly observeRefusal: RefusalObserver;
  /** Is called when the service has stopped, or could not start. */
  readonly onClose: (close: () => unknown) => void;
}

/**
 * Starts a service, whose application is built once Redis answers. Whatever is missing is reported by name.
 * @param build makes the application, and the facts for the line that says that the service has started
 * @throws StartError
 */
export async function hostService(
  env: HostEnv,
  { name, log, tracing, outage }: HostOptions,
  build: (host: Host) => Promise<{ readonly app: RequestListener; readonly facts?: object }>,
): Promise<Service> {
  const clock = () => new Date();
  const registry = createRegistry(name);
  const redis = createRedis(env.REDIS_URL);
  const closing: (() => unknown)[] = [() => redis.disconnect()];
  const close = () => Promise.all(closing.map((each) => each()));
  let isStopping = false;
  try {
    await connectRedis(redis, env.REDIS_URL);
    // One log line when Redis goes away and one when it is back, however many attempts fail in between.
    const redisOutage = new Outage(log, 'Redis', outage);
    redis.on('error', (error) => redisOutage.failed(error));
    redis.on('ready', () => redisOutage.recovered());
    const redisStatus = shared(() =>
      readRedisStatus(redis).catch((error: unknown) => {
        // A command without a connection fails with less than the attempt to connect.
        throw moreInformative(error, redisOutage.cause);
      }),
    );
    const observeRefusal = refusalCounter(registry);
    const onMalformedKey: OnMalformedKey = (keyId, reason) => {
      const message =
        'the record of an API key in Redis is malformed; the key is refused. Revoke it and create another';
      log.error({ event: 'api_key_malformed', keyId, reason }, message);
    };
    const keys = new ApiKeyStore(redis, REDIS_PREFIX, onceAMinute(onMalformedKey));
    const { app, facts } = await build({
      log,
      clock,
      registry,
      redis,
      redisStatus,
      accounts: keys.accounts,
      keys,
      tokens: env.tokens && createTokenVerifier({ ...env.tokens, clock, log }),
      rates: new RateLimiter({ limits: rateLimits(env), observeRefusal }),
      observeRefusal,
      corsOrigins: env.CORS_ORIGINS,
      trustProxy: env.TRUST_PROXY,
      watchers: [requestMetrics(registry), ...(tracing.isOn ? [requestSpans(tracing.tracer)] : [])],
      protectedResource: env.tokens && { issuer: env.tokens.issuer, publicUrl: env.PUBLIC_URL },
      isStopping: () => isStopping,
      onClose: (each) => closing.push(each),
    });
    const { PORT: port, LISTEN_HOST: host, KEEP_ALIVE_MS: keepAliveMs } = env;
    const server = await startServer(app, { port, host, keepAliveMs, log });
    // Last: who asks there learns that it was this process that got the port. /readyz of the API checks the servers behind it.
    const admin = await openAdminServer(env, { metrics: registry }, log);
    log.info({ event: 'started', port: server.port, adminPort: admin?.port, ...facts }, 'listening');
    return {
      stop: async () => {
        isStopping = true;
        await server.close(STOP_DEADLINE_MS, env.STOP_DELAY_MS);
        await admin?.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The connection for credentials and accounts. It fails fast: a caller waits for it. Connects at `connect()`, and reconnects by itself when the connection is lost. */
export function createRedis(url: string): RedisClient {
  return createRedisClient(url, {
    lazyConnect: true,
    // While Redis is away, commands fail at once, as 503 for the caller, instead of piling up.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: TIMEOUT_MS,
    connectTimeout: TIMEOUT_MS,
    retryStrategy: (attempt) => Math.min(attempt * 100, MAX_RECONNECT_DELAY_MS),
  });
}

/**
 * The page is built separately; without it the API works as usual.
 * @param folder where its build belongs
 */
export function builtPage(folder: string, log: Logger): string | undefined {
  if (existsSync(join(folder, 'index.html'))) return folder;
  log.warn({ event: 'page_missing', folder }, 'the web page is not built; only the API answers');
  return undefined;
}

/** What an HTTP service needs from outside, whatever it answers. */
export interface ApplicationOptions {
  readonly log: Logger;
  /** Handlers that see every request first and do not answer it: metrics, traces. */
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

  // The log comes first: it sees every response.
  app.use(requestLog(options.log), ...options.watchers);
  app.param('accountId', (request, _response, next, account: string) => {
    noteInLog(request, { account });
    next();
  });
  // TLS ends in front of this service; only the proxy there knows whether http must become https.
  app.use(
    helmet({
      strictTransportSecurity: false,
      contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } },
    }),
  );
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

/** The largest body of a request to an operation that takes little or nothing. */
const MAX_BODY_BYTES = 16 * 1024;

/** Every body is read to its end, so that the connection can be used again; an operation that takes none ignores it. */
export function readSmallBodies(): RequestHandler {
  return express.raw({ type: () => true, limit: MAX_BODY_BYTES, inflate: false });
}

interface ServiceRoutes extends Pick<ApplicationOptions, 'isStopping' | 'protectedResource'> {
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
