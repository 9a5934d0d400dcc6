/**
 * OAuth2 access tokens: JWTs that the platform's authorisation server signs, and the accounts that their claims name. Nothing is guessed: a
 * claim that is there and has another form makes the token invalid. Source: DESIGN section 7.
 */

import { abortable, MS_PER_DAY } from '@meterline/catalog/plain';
import { Outage } from '@meterline/service/log';
import { createRemoteJWKSet, customFetch, errors, type FetchImplementation, jwtVerify } from 'jose';
import type { Logger } from 'pino';
import { z } from 'zod';
import { authUnavailable, unauthorized } from '../http/errors.js';
import { type AccountClaims, DEFAULT_ACCOUNT_CLAIMS, MalformedClaim, readMemberships } from './account-claims.js';
import type { Caller } from './permissions.js';

/** For the start of a token, of an issuer whose clock is a little ahead. Its end is exact. Source: RFC 7519, section 4.1.5. */
const CLOCK_TOLERANCE_SECONDS = 5;
const FETCH_TIMEOUT_MS = 3_000;
/** For tokens with unknown keys, of all callers together: a new key is known this much later at most. */
const FETCH_INTERVAL_MS = 10_000;
/** Older keys are fetched again, because a key may have been withdrawn. */
const FRESH_MS = 600_000;
/** How long the keys are used after the last time that they could be fetched. */
const KEPT_MS = MS_PER_DAY;

const keySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });

/** Asymmetric only: with a shared secret every service that verifies could also sign. */
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

/** The published keys cannot be read; every other error of jose is one of the token itself. Source: jose, errors. */
const KEYS_UNREADABLE: ReadonlySet<string> = new Set([
  errors.JOSEError.code,
  errors.JWKInvalid.code,
  errors.JWKSInvalid.code,
  errors.JWKSTimeout.code,
]);

/** Platforms write scopes in one of three claims, as one text with spaces between them (RFC 8693, section 4.2) or as a list. */
const scopeClaim = z
  .union([z.string().transform((text) => text.split(' ')), z.array(z.string())], 'must be a text or a list of texts')
  .default([]);
const claims = z.object({
  sub: z.string().min(1, 'must not be empty'),
  scope: scopeClaim,
  scopes: scopeClaim,
  scp: scopeClaim,
});

export interface TokenVerifier {
  /**
   * @returns undefined when the token is not valid
   * @throws ApiError `unauthorized` when a claim has not the form that it should have, `auth_unavailable` when its key cannot
   * be read
   */
  verify(token: string): Promise<Caller | undefined>;
}

export interface TokenVerifierOptions {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  readonly accountClaims?: AccountClaims;
  /** For the times in tokens. */
  readonly clock: () => Date;
  readonly log: Logger;
}

export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const { jwksUrl, issuer, audience, clock, log, accountClaims = DEFAULT_ACCOUNT_CLAIMS } = options;
  const keys = createRemoteJWKSet(new URL(jwksUrl), {
    timeoutDuration: FETCH_TIMEOUT_MS,
    cooldownDuration: FETCH_INTERVAL_MS,
    cacheMaxAge: FRESH_MS,
    [customFetch]: fetchOrLast(new Outage(log, 'JWKS', 'tokens are checked with the keys that are known')),
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

/** The published keys once more while they cannot be fetched, for a day, so that an outage of the platform's server is none of this API. */
function fetchOrLast(outage: Outage): FetchImplementation {
  let last: { readonly published: unknown; readonly at: number } | undefined;
  return async (url, options) => {
    try {
      const response = await fetch(url, options);
      if (response.status !== 200) throw new Error(`${new URL(url).host} answered ${response.status}, not 200`);
      last = { published: keySet.parse(await abortable(response.json(), options.signal)), at: Date.now() };
      outage.recovered();
    } catch (error) {
      outage.failed(error);
      if (!last || Date.now() - last.at > KEPT_MS) throw error;
    }
    return Response.json(last.published);
  };
}

/** @throws MalformedClaim */
function callerOf(payload: unknown, accountClaims: AccountClaims): Caller {
  const known = claims.safeParse(payload);
  if (!known.success) {
    const problems = known.error.issues.map(({ path, message }) => `The token's claim ${path.join('.')} ${message}.`);
    throw new MalformedClaim(problems.join(' '));
  }
  const { sub, scope, scopes, scp } = known.data;
  return { id: sub, scopes: new Set([...scope, ...scopes, ...scp]), ...readMemberships(payload, accountClaims) };
}
