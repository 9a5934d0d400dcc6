/**
 * Who is asking, an API key of ours or a JWT of the platform, and what that caller may do.
 * Source: the API specification, section "Authentication", and DESIGN section 7.
 */
import type { IncomingMessage } from 'node:http';
import { type ApiKeyStore, parseToken, type Role } from '@meterline/access';
import { ApiError, accessDenied, insufficientScope, orAuthUnavailable, unauthorized } from '../http/errors.js';
import { noteInLog } from '../http/request-log.js';
import type { TokenVerifier } from './token-verifier.js';

/** Who is asking, and what they may see. */
export interface Caller {
  /** The service account of an API key, or the subject of a JWT: it stays the same when the token is renewed. */
  readonly id: string;
  /** The scopes of a JWT; undefined for an API key, which needs none. */
  readonly scopes: ReadonlySet<string> | undefined;
  /** The accounts that the caller belongs to. */
  readonly roles: ReadonlyMap<string, Role>;
}

/** @throws ApiError `unauthorized`, `conflicting_credentials`, `auth_unavailable` */
export type Authenticate = (request: IncomingMessage) => Promise<Caller>;

export interface Authorities {
  readonly keys: ApiKeyStore;
  /** Undefined: only API keys are accepted. */
  readonly tokens: TokenVerifier | undefined;
}

export function createAuthenticate(authorities: Authorities): Authenticate {
  return async (request) => {
    const caller = await identify(authorities, readBearerToken(request));
    if (!caller) {
      throw unauthorized('The API key or token is unknown, revoked or expired; send a valid one.', { presented: true });
    }
    noteInLog(request, { caller: caller.id });
    return caller;
  };
}

async function identify({ keys, tokens }: Authorities, token: string): Promise<Caller | undefined> {
  if (!parseToken(token)) return tokens?.verify(token);
  const key = await orAuthUnavailable(keys.authenticate(token));
  return key && { id: key.clientId, scopes: undefined, roles: new Map([[key.account, key.role]]) };
}

export type Scope = 'admin' | 'apiKey:write';

/** Scopes limit JWTs; an API key may do what its role may. @throws ApiError `insufficient_scope` */
export function requireScope({ scopes }: Caller, scope: Scope): void {
  if (scopes && !scopes.has(scope)) throw insufficientScope(scope);
}

/** The caller's role in the account. @throws ApiError `forbidden`, the same whether there is such an account or not */
export function requireMembership({ roles }: Caller, account: string): Role {
  const role = roles.get(account);
  if (!role) throw accessDenied();
  return role;
}

/** @throws ApiError `forbidden` */
export function requireAdmin(role: Role): void {
  if (role !== 'admin') throw accessDenied();
}

/** RFC 6750, section 2.1; the scheme's case does not matter (RFC 9110, section 11.1). */
const BEARER = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/**
 * The bearer token of a request (rule 1 of the section), from `Authorization` or `X-Svc-Authorization`; both may be sent if they are the same.
 * @throws ApiError `unauthorized`, `conflicting_credentials`
 */
function readBearerToken({ headersDistinct }: IncomingMessage): string {
  const values = [...(headersDistinct['authorization'] ?? []), ...(headersDistinct['x-svc-authorization'] ?? [])];
  if (values.length === 0) {
    throw unauthorized('Credentials are missing; send Authorization: Bearer <API key or token>.', { presented: false });
  }
  // A value that is not a bearer token is compared as it is, so it differs from every token.
  const [first, ...others] = values.map((value) => ({ value, token: BEARER.exec(value)?.[1] }));
  if (others.some(({ value, token }) => (token ?? value) !== (first?.token ?? first?.value))) {
    throw new ApiError(
      400,
      'conflicting_credentials',
      'Authorization and X-Svc-Authorization carry different credentials; send one of them.',
    );
  }
  if (first?.token === undefined) {
    throw unauthorized('The credentials are not a bearer token; send Authorization: Bearer <API key or token>.', {
      presented: true,
    });
  }
  return first.token;
}
