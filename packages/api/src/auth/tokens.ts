/**
 * Verifies OAuth2 access tokens: JWTs that are signed by the authorization server of the platform. A token with a malformed claim is rejected,
 * even if the claim is optional. Source: docs/operations.md, "Tokens of the platform".
 */
import { abortable, MS_PER_DAY } from '@meterline/catalog/plain';
import { Outage } from '@meterline/service/log';
import { createRemoteJWKSet, customFetch, errors, type FetchImplementation, jwtVerify } from 'jose';
import type { Logger } from 'pino';
import { z } from 'zod';
import { authUnavailable, unauthorized } from '../http/errors.js';
import { type AccountClaims, DEFAULT_ACCOUNT_CLAIMS, MalformedClaim, readMemberships } from './account-claims.js';
import type { Caller } from './permissions.js';

/** Tolerance for the start of a token's validity, because the issuer's clock may be ahead. The expiration has none. RFC 7519, section 4.1.5. */
const CLOCK_TOLERANCE_SECONDS = 5;
const FETCH_TIMEOUT_MS = 3_000;
/** Minimum interval between two fetches for tokens with an unknown key. A new key of the platform is thus accepted after this time at the latest. */
const FETCH_INTERVAL_MS = 10_000;
/** Keys are fetched again after this time, because the platform may have withdrawn one of them. */
const FRESH_MS = 600_000;
/** If fetching fails, the keys of the last fetch are used for this long. */
const KEPT_MS = MS_PER_DAY;

const keySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });

/** Only asymmetric algorithms are allowed. With a shared secret, every service that verifies tokens could also sign them. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

/** Codes of errors in the key set. All other errors of the JWT library jose mean that the token itself is invalid. Source: jose, errors. */
const KEYS_UNREADABLE: ReadonlySet<string> = new Set([
  errors.JOSEError.code,
  errors.JWKInvalid.code,
  errors.JWKSInvalid.code,
  errors.JWKSTimeout.code,
]);

/** The scopes are in `scope`, `scopes` or `scp`, depending on the platform: a list, or a string with spaces (RFC 8693, section 4.2). */
const scopeClaim = z
  .union(
    [z.string().transform((text) => text.split(' ')), z.array(z.string())],
    'must be a string or a list of strings',
  )
  .default([]);
const claims = z.object({
  sub: z.string().min(1, 'must not be empty'),
  scope: scopeClaim,
  scopes: scopeClaim,
  scp: scopeClaim,
});

export interface TokenVerifier {
  /** Returns undefined for an invalid token. @throws ApiError `unauthorized` for a malformed claim, or `auth_unavailable` */
  verify(token: string): Promise<Caller | undefined>;
}

export interface TokenVerifierOptions {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  readonly accountClaims?: AccountClaims;
  readonly clock: () => Date;
  readonly log: Logger;
}

export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const { jwksUrl, issuer, audience, clock, log, accountClaims = DEFAULT_ACCOUNT_CLAIMS } = options;
  const keys = createRemoteJWKSet(new URL(jwksUrl), {
    timeoutDuration: FETCH_TIMEOUT_MS,
    cooldownDuration: FETCH_INTERVAL_MS,
    cacheMaxAge: FRESH_MS,
    [customFetch]: fetchOrLast(new Outage(log, 'JWKS', 'tokens are checked with the last fetched keys')),
  });
  return {
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, keys, {
          issuer,
          audience,
          algorithms: ALGORITHMS,
          requiredClaims: ['exp', 'sub'],
          currentDate: clock(),
          clockTolerance: CLOCK_TOLERANCE_SECONDS,
        });
        return Number(payload.exp) * 1000 > clock().getTime() ? callerOf(payload, accountClaims) : undefined;
      } catch (error) {
        if (error instanceof MalformedClaim) throw unauthorized(error.message, { presented: true });
        if (error instanceof errors.JOSEError && !KEYS_UNREADABLE.has(error.code)) return undefined;
        throw authUnavailable(error);
      }
    },
  };
}

/** Fetches the keys. If that fails, returns the keys of the last fetch for up to a day, so that this API also works while the platform is down. */
function fetchOrLast(outage: Outage): FetchImplementation {
  let last: { readonly published: unknown; readonly at: number } | undefined;
  return async (url, options) => {
    try {
      const response = await fetch(url, options);
      if (response.status !== 200)
        throw new Error(`${new URL(url).host} returned status ${response.status} instead of 200`);
      last = { published: keySet.parse(await abortable(response.json(), options.signal)), at: Date.now() };
      outage.recovered();
    } catch (error) {
      outage.failed(error);
      if (!last || Date.now() - last.at > KEPT_MS) throw error;
    }
    return Response.json(last.published);
  };
}

function callerOf(payload: unknown, accountClaims: AccountClaims): Caller {
  const known = claims.safeParse(payload);
  if (!known.success) {
    const problems = known.error.issues.map(({ path, message }) => `The token's claim ${path.join('.')} ${message}.`);
    throw new MalformedClaim(problems.join(' '));
  }
  const { sub, scope, scopes, scp } = known.data;
  return { id: sub, scopes: new Set([...scope, ...scopes, ...scp]), ...readMemberships(payload, accountClaims) };
}
