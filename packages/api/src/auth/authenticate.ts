/** Identifies the caller of a request by a Meterline API key or by a JWT of the platform. Source: docs/api-contract.md, "Credentials". */
import type { IncomingMessage } from 'node:http';
import { MS_PER_HOUR } from '@meterline/catalog';
import { onceAMinute } from '@meterline/service';
import {
  type ApiKey,
  ApiKeyExpired,
  type ApiKeyStore,
  PLATFORM_ROLES,
  type PlatformRole,
  parseToken,
  ROLES,
  type Role,
} from '@meterline/service/access';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { ApiError, orAuthUnavailable, unauthorized, unknownCredential } from '../http/errors.js';
import { noteInLog } from '../http/request-record.js';
import type { Caller } from './permissions.js';
import type { TokenVerifier } from './tokens.js';

export type Authenticate = (request: IncomingMessage) => Promise<Caller>;

export interface Authorities {
  readonly keys: ApiKeyStore;
  /** If undefined, the service accepts only API keys. */
  readonly tokens: TokenVerifier | undefined;
  readonly clock: () => Date;
  readonly log: Logger;
}

export function createAuthenticate(authorities: Authorities): Authenticate {
  const onFailure = onceAMinute((err: unknown) => {
    const message =
      'the last use of an API key could not be recorded; if Redis denies the write, use the current redis/users.conf';
    authorities.log.warn({ event: 'last_use_not_written', err }, message);
  });
  const lastUses = new LastUses(authorities.keys, onFailure);
  return async (request) => {
    const caller = await identify(authorities, lastUses, readBearerToken(request));
    if (!caller) throw unknownCredential();
    noteInLog(request, { caller: caller.id });
    return caller;
  };
}

async function identify(
  { keys, tokens, clock }: Authorities,
  lastUses: LastUses,
  token: string,
): Promise<Caller | undefined> {
  if (!parseToken(token)) return tokens?.verify(token);
  const now = clock();
  const key = await orAuthUnavailable(keys.authenticate(token, now).catch(rejectExpired));
  if (!key) return undefined;
  lastUses.note(key.keyId, now);
  return callerOf(key);
}

function callerOf({ account, clientId: id, keyId, role }: ApiKey): Caller {
  const caller = {
    id,
    keyId,
    scopes: undefined,
    roles: new Map<string, Role>(),
    platformRoles: new Set<PlatformRole>(),
  };
  if (account === undefined)
    return { ...caller, platformRoles: new Set(PLATFORM_ROLES.filter((each) => each === role)) };
  if (role === 'emitter') return { ...caller, emitsFor: account };
  return { ...caller, roles: new Map(ROLES.filter((each) => each === role).map((each) => [account, each])) };
}

function rejectExpired(error: unknown): never {
  if (!(error instanceof ApiKeyExpired)) throw error;
  const message = `The API key expired at ${error.expiresAt}; ask an admin of the account for another one.`;
  throw unauthorized(message, { presented: true });
}

/** Matches a header with the scheme `Bearer`, whose name is case-insensitive (RFC 9110, section 11.1). */
const BEARER_SCHEME = /^Bearer(?: |$)/i;
/** Matches a header with a well-formed bearer token (RFC 6750, section 2.1). */
const BEARER = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/**
 * Returns the bearer token from `Authorization` or `X-Svc-Authorization`. A request may have both headers if their tokens are the same, or if
 * one header has another scheme, such as `Basic` credentials for a proxy. Source: docs/api-contract.md, "Credentials".
 * @throws ApiError `unauthorized` or `conflicting_credentials`
 */
function readBearerToken({ headersDistinct }: IncomingMessage): string {
  const sent = ['Authorization', 'X-Svc-Authorization'].flatMap((name) => {
    const value = onlyValue(name, headersDistinct[name.toLowerCase()]);
    return value === undefined ? [] : [value];
  });
  const bearers = sent.filter((value) => BEARER_SCHEME.test(value)).map((value) => ({ value, token: tokenOf(value) }));
  const [first, second] = bearers;
  if (first && second && (first.token ?? first.value) !== (second.token ?? second.value)) {
    throw conflictingCredentials(
      'Authorization and X-Svc-Authorization contain different bearer tokens; send one of them.',
    );
  }
  if (first?.token !== undefined) return first.token;
  throw sent.length === 0
    ? unauthorized('Credentials are missing; send Authorization: Bearer <API key or token>.', { presented: false })
    : unauthorized('The credentials are not a bearer token; send Authorization: Bearer <API key or token>.', {
        presented: true,
      });
}

function tokenOf(value: string): string | undefined {
  return BEARER.exec(value)?.[1];
}

/** Rejects a header with several different values, because it must not be repeated (RFC 9110, section 5.3). Equal values are harmless. */
function onlyValue(name: string, values: readonly string[] = []): string | undefined {
  const [value, ...others] = new Set(values);
  if (others.length > 0) {
    throw conflictingCredentials(
      `The request has ${values.length} ${name} headers with different values; send one. If a proxy adds its own ` +
        `credentials, send those for the API in ${name === 'Authorization' ? 'X-Svc-Authorization' : 'Authorization'}.`,
    );
  }
  return value;
}

function conflictingCredentials(message: string): ApiError {
  return new ApiError(400, 'conflicting_credentials', message);
}

const MAX_REMEMBERED_KEYS = 100_000;
const RETRY_MS = 60_000;

/** Records in the background when API keys were last used, with at most one write per key and hour. */
export class LastUses {
  readonly #keys: Pick<ApiKeyStore, 'noteUse'>;
  readonly #onFailure: (error: unknown) => void;
  /** Maps the ID of an API key to the earliest time of its next write, in epoch milliseconds. */
  readonly #nextWriteAt = new LRUCache<string, number>({ max: MAX_REMEMBERED_KEYS });

  constructor(keys: Pick<ApiKeyStore, 'noteUse'>, onFailure: (error: unknown) => void) {
    this.#keys = keys;
    this.#onFailure = onFailure;
  }

  note(keyId: string, now: Date): void {
    const at = now.getTime();
    if (at < (this.#nextWriteAt.get(keyId) ?? 0)) return;
    const hour = Math.floor(at / MS_PER_HOUR) * MS_PER_HOUR;
    this.#nextWriteAt.set(keyId, hour + MS_PER_HOUR);
    // The write fails while Redis is full or down. The response does not depend on the write, and a later request tries again.
    this.#keys.noteUse(keyId, new Date(hour)).catch((error: unknown) => {
      this.#nextWriteAt.set(keyId, at + RETRY_MS);
      this.#onFailure(error);
    });
  }
}
