/** Starts and stops an HTTP service: connects to Redis, builds the application, and opens the ports. */
import type { RequestListener } from 'node:http';
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
  REDIS_POLICIES,
  REDIS_PREFIX,
  type RedisClient,
  type RedisStatus,
  readRedisStatus,
} from '@meterline/service/access';
import { createRegistry } from '@meterline/service/metrics';
import type { Tracing } from '@meterline/service/tracing';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { z } from 'zod';
import { type DenialObserver, denialCounter, RateLimiter } from './admission/rate-limits.js';
import type { ApplicationOptions } from './application.js';
import type { Authorities } from './auth/authenticate.js';
import { createTokenVerifier } from './auth/tokens.js';
import { type httpVariables, rateLimits, type WithTokens } from './environment.js';
import { requestMetrics, requestSpans } from './http/request-observation.js';
import { startServer } from './server.js';

type HostEnv = WithTokens<z.output<z.ZodObject<typeof httpVariables>>> &
  z.output<z.ZodObject<typeof processVariables>> &
  Parameters<typeof rateLimits>[0] & { readonly PORT: number };

interface HostOptions {
  readonly name: 'query' | 'collector';
  readonly log: Logger;
  readonly tracing: Tracing;
  /** A description of how an outage of Redis affects the service, for the log. */
  readonly outage: string;
}

interface Host extends ApplicationOptions, Authorities {
  readonly registry: Registry;
  readonly redis: RedisClient;
  /** Reads the status of Redis. Rejects with the reason if Redis is down or rejects this process. Concurrent calls share one reading. */
  readonly redisStatus: () => Promise<RedisStatus>;
  readonly accounts: AccountDirectory;
  readonly rates: RateLimiter;
  readonly observeDenial: DenialObserver;
  /** Registers a function that is called when the service has stopped or could not start. */
  readonly onClose: (close: () => unknown) => void;
}

/** Connects to Redis, and starts the application that `build` returns. The log line of the start includes the returned facts. @throws StartError */
export async function hostService(
  env: HostEnv,
  { name, log, tracing, outage }: HostOptions,
  build: (host: Host) => Promise<{ readonly app: RequestListener; readonly facts?: object }>,
): Promise<Service> {
  const clock = () => new Date();
  const registry = createRegistry(name);
  const redis = createRedisClient(env.REDIS_URL, REDIS_POLICIES.request);
  const closing: (() => unknown)[] = [() => redis.disconnect()];
  const close = () => Promise.all(closing.map((each) => each()));
  let isStopping = false;
  try {
    await connectRedis(redis, env.REDIS_URL);
    const observeDenial = denialCounter(registry);
    const keys = new ApiKeyStore(redis, REDIS_PREFIX, onceAMinute(logMalformedKey(log)));
    const { app, facts } = await build({
      log,
      clock,
      registry,
      redis,
      redisStatus: watchRedis(redis, new Outage(log, 'Redis', outage)),
      accounts: keys.accounts,
      keys,
      tokens: env.tokens && createTokenVerifier({ ...env.tokens, clock, log }),
      rates: new RateLimiter({ limits: rateLimits(env), observeDenial }),
      observeDenial,
      corsOrigins: env.CORS_ORIGINS,
      trustProxy: env.TRUST_PROXY,
      watchers: [requestMetrics(registry), ...(tracing.isOn ? [requestSpans(tracing.tracer)] : [])],
      protectedResource: env.tokens && { issuer: env.tokens.issuer, publicUrl: env.PUBLIC_URL },
      isStopping: () => isStopping,
      onClose: (each) => closing.push(each),
    });
    const { PORT: port, LISTEN_HOST: host, KEEP_ALIVE_MS: keepAliveMs } = env;
    const server = await startServer(app, { port, host, keepAliveMs, log });
    // The admin port opens last. If it responds, this process also listens on the main port.
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

function watchRedis(redis: RedisClient, outage: Outage): () => Promise<RedisStatus> {
  redis.on('error', (error) => outage.failed(error));
  redis.on('ready', () => outage.recovered());
  return shared(() =>
    readRedisStatus(redis).catch((error: unknown) => {
      // While there is no connection, the error of the last connection attempt says more than the error of a command.
      throw moreInformative(error, outage.cause);
    }),
  );
}

function logMalformedKey(log: Logger): OnMalformedKey {
  return (keyId, reason) => {
    const message =
      'the record of an API key in Redis is malformed, so the key is rejected; revoke the key and create another one';
    log.error({ event: 'api_key_malformed', keyId, reason }, message);
  };
}
