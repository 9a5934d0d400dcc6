/** OAuth2 access tokens: JWTs that the platform's authorisation server signs. Source: DESIGN section 7. */
import { ROLES, type Role } from '@meterline/access';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import { z } from 'zod';
import { authUnavailable } from '../http/errors.js';
import type { Caller } from './authenticate.js';

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

const JWKS_TIMEOUT_MS = 3_000;

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

const claims = z.object({
  sub: z.string().min(1),
  scope: z.string().default(''),
  scopes: z.array(z.string()).default([]),
  scp: z.array(z.string()).default([]),
  accounts: z.record(z.string(), z.string()).default({}),
});
type Claims = z.output<typeof claims>;

const role = z.enum(ROLES);

export interface TokenVerifier {
  /** @returns undefined when the token is not valid. @throws ApiError `auth_unavailable` when its key cannot be read */
  verify(token: string): Promise<Caller | undefined>;
}

export interface TokenVerifierOptions {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  readonly clock: () => Date;
}

export function createTokenVerifier({ jwksUrl, issuer, audience, clock }: TokenVerifierOptions): TokenVerifier {
  const keys = createRemoteJWKSet(new URL(jwksUrl), { timeoutDuration: JWKS_TIMEOUT_MS });
  return {
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, keys, {
          issuer,
          audience,
          algorithms: ALGORITHMS,
          requiredClaims: ['exp', 'sub'],
          currentDate: clock(),
        });
        const known = claims.safeParse(payload);
        return known.success ? caller(known.data) : undefined;
      } catch (error) {
        if (error instanceof errors.JOSEError && TOKEN_FAULTS.has(error.code)) return undefined;
        throw authUnavailable(error);
      }
    },
  };
}

function caller({ sub, scope, scopes, scp, accounts }: Claims): Caller {
  return {
    id: sub,
    scopes: new Set([...scope.split(' '), ...scopes, ...scp]),
    roles: new Map(Object.entries(accounts).flatMap(membership)),
  };
}

/** A role that Meterline does not know gives no access. */
function membership([account, name]: [string, string]): [string, Role][] {
  const known = role.safeParse(name);
  return known.success ? [[account, known.data]] : [];
}
