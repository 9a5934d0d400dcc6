/** How an application becomes a service: what it shares with others, its connection to Redis, its ports, its page, its start and its end. */
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
} from '@meterline/service';
import {
  type AccountDirectory,
  ApiKeyStore,
  createRedisClient,
  type OnMalformedKey,
  REDIS_PREFIX,
  type RedisClient,
} from '@meterline/service/access';
import { createRegistry } from '@meterline/service/metrics';
import type { Tracing } from '@meterline/service/tracing';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { z } from 'zod';
import { RateLimiter, type RefusalObserver, refusalCounter } from './admission/rate-limits.js';
import type { ApplicationOptions } from './application.js';
import type { Authorities } from './auth/authenticate.js';
import { createTokenVerifier } from './auth/tokens.js';
import { type httpVariables, rateLimits, type WithTokens } from './environment.js';
import { requestMetrics, requestSpans } from './http/request-observation.js';
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
  /** Under which requests are counted: each service has limits of its own. */
  readonly limitsPrefix: string;
  /** What follows while Redis is away, for the log. */
  readonly outage: string;
}

/** What every such service has. */
interface Host extends ApplicationOptions, Authorities {
  readonly registry: Registry;
  readonly redis: RedisClient;
  readonly accounts: AccountDirectory;
  readonly rates: RateLimiter;
  readonly observeRefusal: RefusalObserver;
  /** Is called when the service has stopped, or could not start. */
  readonly onClose: (close: () => unknown) => void;
}

/**
 * Starts a service, whose application is built once Redis answers. Whatever is missing is reported by name.
 * @param build its facts are for the line that says that the service has started
 * @throws StartError
 */
export async function hostService(
  env: HostEnv,
  { name, log, tracing, limitsPrefix, outage }: HostOptions,
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
    // One line when Redis goes away and one when it is back, however many attempts fail in between.
    const redisOutage = new Outage(log, 'Redis', outage);
    redis.on('error', (error) => redisOutage.failed(error));
    redis.on('ready', () => redisOutage.recovered());
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
      accounts: keys.accounts,
      keys,
      tokens: env.tokens && createTokenVerifier({ ...env.tokens, clock, log }),
      rates: new RateLimiter({ redis, prefix: limitsPrefix, limits: rateLimits(env), observeRefusal }),
      observeRefusal,
      corsOrigins: env.CORS_ORIGINS,
      trustProxy: env.TRUST_PROXY,
      watchers: [requestMetrics(registry), ...(tracing.isOn ? [requestSpans(tracing.tracer)] : [])],
      protectedResource: env.tokens && { issuer: env.tokens.issuer, publicUrl: env.PUBLIC_URL },
      isStopping: () => isStopping,
      onClose: (each) => closing.push(each),
    });
    const server = await startServer(app, { port: env.PORT, host: env.LISTEN_HOST, log });
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
