/** How an application becomes a service: its ports, its page, and what it says of keys that it cannot read. */
import { access } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import type { OnMalformedKey } from '@meterline/access';
import { type AdminServer, listenError, openAdminServer } from '@meterline/service';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { TokenVerifier } from './auth/token-verifier.js';
import type { TokenSettings } from './environment.js';
import { type RunningServer, startServer } from './server.js';

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
  // A build of an earlier release has no manifest, which the reference needs.
  const built = await access(join(folder, '.vite', 'manifest.json')).then(
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

/** What checks tokens, of a service that takes them: its library is loaded only then. */
export async function openTokenVerifier(
  {
    tokens,
    AUTH_JWKS_KEPT_MS: keptMs,
  }: { readonly tokens: TokenSettings | undefined; readonly AUTH_JWKS_KEPT_MS: number },
  clock: () => Date,
  log: Logger,
): Promise<TokenVerifier | undefined> {
  if (!tokens) return undefined;
  const { createTokenVerifier } = await import('./auth/token-verifier.js');
  return createTokenVerifier({ ...tokens, keptMs, clock, log });
}
