/** How an application becomes a service: its connection to Redis, its ports, its page, and what it says of keys that it cannot read. */
import { access } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { type AdminServer, listenError, Outage, openAdminServer } from '@meterline/service';
import { createRedisClient, type OnMalformedKey, type RedisClient } from '@meterline/service/access';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { type RunningServer, startServer } from './server.js';

const TIMEOUT_MS = 2_000;
const MAX_RECONNECT_DELAY_MS = 1_000;

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
 * One line when Redis goes away and one when it is back, however many attempts fail in between.
 * @param consequence of the outage, for the log
 */
export function watchOutages(redis: RedisClient, log: Logger, consequence: string): void {
  const outage = new Outage(log, 'Redis', consequence);
  redis.on('error', (error) => outage.failed(error));
  redis.on('ready', () => outage.recovered());
}

/** The variables that say where it listens. */
interface Address {
  readonly LISTEN_HOST?: string | undefined;
  readonly PORT: number;
  readonly ADMIN_PORT?: number | undefined;
}

export function logMalformedKey(log: Logger): OnMalformedKey {
  return (keyId, reason) => {
    const message = 'the record of an API key in Redis is malformed; the key is refused. Revoke it and create another';
    log.error({ event: 'api_key_malformed', keyId, reason }, message);
  };
}

/**
 * The page is built separately; without it the API works as usual.
 * @param folder where its build belongs
 */
export async function builtPage(folder: string, log: Logger): Promise<string | undefined> {
  const built = await access(join(folder, 'index.html')).then(
    () => true,
    () => false,
  );
  if (built) return folder;
  log.warn({ event: 'page_missing', folder }, 'the web page is not built; only the API answers');
  return undefined;
}

/** @throws StartError when the port is in use */
export async function openAdminPort(env: Address, registry: Registry, log: Logger): Promise<AdminServer | undefined> {
  if (env.ADMIN_PORT === undefined) return undefined;
  // Healthy means only that it answers; /readyz of the API checks the servers behind it.
  const health = async () => ({ healthy: true, facts: { status: 'ok' } });
  const address = { port: env.ADMIN_PORT, host: env.LISTEN_HOST };
  return openAdminServer(address, { health, metrics: registry }, log);
}

/** @throws StartError when the port is in use */
export async function listen(
  app: RequestListener,
  { LISTEN_HOST, PORT }: Address,
  log: Logger,
): Promise<RunningServer> {
  try {
    return await startServer(app, { port: PORT, host: LISTEN_HOST, log });
  } catch (error) {
    throw listenError({ port: PORT, variable: 'PORT', host: LISTEN_HOST }, error);
  }
}
