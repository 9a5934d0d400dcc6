/** OAuth2 access tokens: JWTs that the platform's authorisation server signs. Source: DESIGN section 7. */
import { Outage } from '@meterline/service';
import { errors, jwtVerify } from 'jose';
import type { Logger } from 'pino';
import { z } from 'zod';
import { authUnavailable, unauthorized } from '../http/errors.js';
import { type AccountClaims, DEFAULT_ACCOUNT_CLAIMS, MalformedClaim, readMemberships } from './account-claims.js';
import type { Caller } from './authenticate.js';
import { SigningKeys } from './signing-keys.js';

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

/** Faults of the token itself. Any other error means that the signing keys cannot be read. Source: jose, errors. */
const TOKEN_FAULTS: ReadonlySet<string> = new Set([
  errors.JOSEAlgNotAllowed.code,
  errors.JOSENotSupported.code,
  errors.JWKSMultipleMatchingKeys.code,
  errors.JWKSNoMatchingKey.code,
  errors.JWSInvalid.code,
  errors.JWSSignatureVerificationFailed.code,
  errors.JWTClaimValidationFailed.code,
  errors.JWTExpired.code,
  errors.JWTInvalid.code,
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
  /** How long keys are used while the JWKS is away. */
  readonly keptMs: number;
  /** For the times in tokens. */
  readonly clock: () => Date;
  /** For the age of keys. */
  readonly elapsedMs?: () => number;
  readonly log: Logger;
}

export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const { jwksUrl, keptMs, issuer, audience, clock, elapsedMs = () => performance.now(), log } = options;
  const { accountClaims = DEFAULT_ACCOUNT_CLAIMS } = options;
  const outage = new Outage(log, 'JWKS', 'tokens are checked with the keys that are known');
  const keys = new SigningKeys({
    jwksUrl,
    keptMs,
    elapsedMs,
    onFailure: (error) => outage.failed(error),
    onSuccess: () => outage.recovered(),
  });
  return {
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, (header, jws) => keys.find(header, jws), {
          issuer,
          audience,
          algorithms: ALGORITHMS,
          requiredClaims: ['exp', 'sub'],
          currentDate: clock(),
        });
        return callerOf(payload, accountClaims);
      } catch (error) {
        if (error instanceof MalformedClaim) throw unauthorized(error.message, { presented: true });
        if (error instanceof errors.JOSEError && TOKEN_FAULTS.has(error.code)) return undefined;
        throw authUnavailable(error);
      }
    },
  };
}

/** @throws MalformedClaim */
function callerOf(payload: unknown, accountClaims: AccountClaims): Caller {
  const known = claims.safeParse(payload);
  if (!known.success) {
    const faults = known.error.issues.map(({ path, message }) => `The token's claim ${path.join('.')} ${message}.`);
    throw new MalformedClaim(faults.join(' '));
  }
  const { sub, scope, scopes, scp } = known.data;
  return { id: sub, scopes: new Set([...scope, ...scopes, ...scp]), ...readMemberships(payload, accountClaims) };
}
