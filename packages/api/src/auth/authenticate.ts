/**
 * Who is asking, an API key of ours or a JWT of the platform, and what that caller may do.
 * Source: the API specification, section "Authentication", and DESIGN section 7.
 */
import type { IncomingMessage } from 'node:http';
import { ApiKeyExpired, type ApiKeyStore, parseToken, type Role } from '@meterline/access';
import type { Party } from '../admission/party.js';
import { ApiError, accessDenied, insufficientScope, orAuthUnavailable, unauthorized } from '../http/errors.js';
import { noteInLog } from '../http/request-observation.js';
import { oncePerTurn } from '../once-per-turn.js';
import { LastUses } from './last-uses.js';
import type { TokenVerifier } from './token-verifier.js';

/** Who is asking, and what they may see. */
export interface Caller {
  /** The service account of an API key, or the subject of a JWT: it stays the same when the token is renewed. */
  readonly id: string;
  /** The id of the API key that was sent; undefined for a JWT. */
  readonly keyId?: string;
  /** The scopes of a JWT; undefined for an API key, which needs none. */
  readonly scopes: ReadonlySet<string> | undefined;
  /** The accounts that the caller may read. */
  readonly roles: ReadonlyMap<string, Role>;
  /** The account of an emitter's key, which may send events of it and read nothing. */
  readonly emitsFor?: string;
  /** What a JWT calls accounts; of an account that it does not name so, the name is the registered one. */
  readonly accountNames?: ReadonlyMap<string, string>;
}

/** @throws ApiError `unauthorized`, `conflicting_credentials`, `auth_unavailable` */
export type Authenticate = (request: IncomingMessage) => Promise<Caller>;

export interface Authorities {
  readonly keys: ApiKeyStore;
  /** Undefined: only API keys are accepted. */
  readonly tokens: TokenVerifier | undefined;
  readonly clock: () => Date;
}

export function createAuthenticate(authorities: Authorities): Authenticate {
  const lastUses = new LastUses(authorities.keys);
  // One look-up for all requests of one turn of the event loop that have the same token. It begins after the last of them came,
  // so that each sees a revocation that was over before it.
  const identified = oncePerTurn(
    (token: string) => token,
    (token) => identify(authorities, lastUses, token),
  );
  return async (request) => {
    const caller = await identified(readBearerToken(request)).outcome;
    if (!caller) {
      throw unauthorized('The API key or token is unknown, revoked or expired; send a valid one.', { presented: true });
    }
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
  const key = await orAuthUnavailable(keys.authenticate(token, now).catch(refuseExpired));
  if (!key) return undefined;
  lastUses.note(key.keyId, now);
  const { account, clientId: id, keyId, role } = key;
  if (role === 'emitter') return { id, keyId, scopes: undefined, roles: new Map(), emitsFor: account };
  return { id, keyId, scopes: undefined, roles: new Map([[account, role]]) };
}

function refuseExpired(error: unknown): never {
  if (!(error instanceof ApiKeyExpired)) throw error;
  const message = `The API key expired at ${error.expiresAt}; ask an admin of the account for another one.`;
  throw unauthorized(message, { presented: true });
}

/** Whose request it is where it names no account: the caller's only one, or one of its own. */
export function partyOf({ id, roles, emitsFor }: Caller): Party {
  const [account = emitsFor ?? '', ...others] = roles.keys();
  // No account is called so: a name has no control characters.
  return { account: others.length > 0 ? `\0${id}` : account, caller: id };
}

/** The scopes that operations of this API need. Source: the API specification, section "Authentication". */
export const SCOPES = ['admin', 'apiKey:list', 'apiKey:write'] as const;
export type Scope = (typeof SCOPES)[number];

/** Scopes limit JWTs; an API key may do what its role may. @throws ApiError `insufficient_scope` */
export function requireScope({ scopes }: Caller, scope: Scope): void {
  if (scopes && !scopes.has(scope)) throw insufficientScope(scope);
}

/** @throws ApiError `forbidden` for a key that may only send events */
export function requireReader({ emitsFor }: Caller): void {
  if (emitsFor === undefined) return;
  const message =
    'This API key has the role emitter: it may send events to the collector, and read nothing. Use a key with the role admin or member.';
  throw new ApiError(403, 'forbidden', message);
}

/** The caller's role in the account. @throws ApiError `forbidden`, the same whether there is such an account or not */
export function requireMembership(caller: Caller, account: string): Role {
  requireReader(caller);
  const role = caller.roles.get(account);
  if (!role) throw accessDenied();
  return role;
}

/** The accounts that the caller is an admin of. @throws ApiError `forbidden` where there are none */
export function requireAdminAccounts(caller: Caller): readonly string[] {
  requireReader(caller);
  const accounts = [...caller.roles].flatMap(([account, role]) => (role === 'admin' ? [account] : []));
  if (accounts.length === 0) throw accessDenied();
  return accounts;
}

/** @throws ApiError `forbidden` */
export function requireAdmin(role: Role): void {
  if (role !== 'admin') throw accessDenied();
}

/**
 * May the caller send events of the account? An API key needs the role `emitter`; a token the scope `admin` and the role of an
 * admin. Source: docs/decisions/0027.
 * @throws ApiError `insufficient_scope`; `forbidden`, the same for every account that is not the caller's
 */
export function requireEmitter(caller: Caller, account: string): void {
  requireScope(caller, 'admin');
  const { emitsFor, keyId, roles } = caller;
  if (emitsFor === account) return;
  const role = roles.get(account);
  if (role === undefined) throw accessDenied();
  if (keyId !== undefined) throw new ApiError(403, 'forbidden', KEY_READS_ONLY);
  if (role !== 'admin') throw new ApiError(403, 'forbidden', MEMBER_READS_ONLY);
}

const KEY_READS_ONLY =
  'This API key may read and not send events; send them with a key of the role emitter, such as meterline keys create --role emitter makes.';
const MEMBER_READS_ONLY =
  'A member of the account may read and not send events; send them with the token of an admin, or an API key of the role emitter.';

/** The scheme's case does not matter (RFC 9110, section 11.1). */
const BEARER_SCHEME = /^Bearer(?: |$)/i;
/** RFC 6750, section 2.1. */
const BEARER = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/**
 * The bearer token of a request (rule 1 of the section), from `Authorization` or `X-Svc-Authorization`. Both may be sent if
 * they carry the same token, or if one of them has another scheme: that one is for something else, such as a proxy.
 * @throws ApiError `unauthorized`, `conflicting_credentials`
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
      'Authorization and X-Svc-Authorization carry different bearer tokens; send one of them.',
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

/** RFC 9110, section 5.3: a header that is no list comes once; repeated with the same value it says the same. */
function onlyValue(name: string, values: readonly string[] = []): string | undefined {
  const [value, ...others] = new Set(values);
  if (others.length > 0) {
    throw conflictingCredentials(
      `The request has ${values.length} ${name} headers with different values; send one. A proxy that adds its own ` +
        `credentials can leave ${name === 'Authorization' ? 'X-Svc-Authorization' : 'Authorization'} to the API.`,
    );
  }
  return value;
}

function conflictingCredentials(message: string): ApiError {
  return new ApiError(400, 'conflicting_credentials', message);
}
