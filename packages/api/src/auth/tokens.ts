/**
 * OAuth2 access tokens: JWTs that the platform's authorisation server signs, and the accounts that their claims name. Nothing is guessed: a
 * claim that is there and has another form makes the token invalid. Source: DESIGN section 7.
 */

import { abortable, isName, MS_PER_DAY } from '@meterline/catalog';
import { Outage } from '@meterline/service';
import { ROLES, type Role } from '@meterline/service/access';
import { createRemoteJWKSet, customFetch, errors, type FetchImplementation, jwtVerify } from 'jose';
import type { Logger } from 'pino';
import { z } from 'zod';
import { authUnavailable, unauthorized } from '../http/errors.js';
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

/** From the token's claims inwards. */
export type ClaimPath = readonly string[];

export interface AccountClaims {
  /** Where the accounts are. */
  readonly accounts: ClaimPath;
  /** Where their names are; undefined: tokens do not name accounts. */
  readonly names: ClaimPath | undefined;
  /**
   * The roles of the platform that make an admin; every other one makes a member. Undefined: the roles are those of
   * Meterline, and any other gives no access.
   */
  readonly adminRoles: readonly string[] | undefined;
}

export const DEFAULT_ACCOUNT_CLAIMS: AccountClaims = {
  accounts: ['accounts'],
  names: undefined,
  adminRoles: undefined,
};

/** A claim has a form that it must not have. The message is one for the caller. */
class MalformedClaim extends Error {
  override readonly name = 'MalformedClaim';
}

/**
 * `app_metadata.accounts` leads into an object. A name with a colon, such as `https://example.com/accounts`, is that of one
 * claim, whatever dots it has.
 * @returns undefined if a part is empty
 */
export function claimPath(text: string): ClaimPath | undefined {
  const path = text.includes(':') ? [text] : text.split('.');
  return path.includes('') ? undefined : path;
}

/** @throws MalformedClaim */
function readMemberships(claims: unknown, { accounts, names, adminRoles }: AccountClaims) {
  const roles = new Map<string, Role>();
  for (const [account, name] of entriesOf(claims, accounts, accountsClaim, ACCOUNT_FORMS)) {
    const role = roleOf(name, adminRoles);
    if (role) roles.set(account, role);
  }
  const accountNames = new Map<string, string>();
  for (const [account, name] of names ? entriesOf(claims, names, namesClaim, NAME_FORMS) : []) {
    if (name !== undefined) accountNames.set(account, name);
  }
  return { roles, accountNames };
}

/** @param name undefined: the platform says no more than that the subject belongs to the account */
function roleOf(name: string | undefined, adminRoles: AccountClaims['adminRoles']): Role | undefined {
  if (name === undefined) return 'member';
  if (adminRoles) return adminRoles.includes(name) ? 'admin' : 'member';
  return ROLES.find((role) => role === name);
}

const id = z.string().refine(isName);
const text = z.string().min(1);

/** An account, and its role or its name. */
type Entry = readonly [account: string, word: string | undefined];

/** Each form of the claim becomes a list of entries. */
const accountsClaim = z.union([
  z.record(id, text).transform((roles): Entry[] => Object.entries(roles)),
  z.array(z.object({ id, role: text }).transform((entry): Entry => [entry.id, entry.role])),
  z.array(id.transform((account): Entry => [account, undefined])),
]);
const ACCOUNT_FORMS = 'an object of account ids and roles, a list of objects with id and role, or a list of ids';

const namesClaim = z.union([
  z.record(id, id).transform((names): Entry[] => Object.entries(names)),
  z.array(z.object({ id, name: id.optional() }).transform((entry): Entry => [entry.id, entry.name])),
]);
const NAME_FORMS = 'an object of account ids and names, or a list of objects with id and name';

/** None if the claim is not there. @throws MalformedClaim */
function entriesOf(claims: unknown, path: ClaimPath, schema: z.ZodType<Entry[]>, forms: string): Entry[] {
  const claim = claimAt(claims, path);
  if (claim === undefined) return [];
  const entries = schema.safeParse(claim);
  if (!entries.success)
    throw new MalformedClaim(`The token's claim ${path.join('.')} must be ${forms}, all of them texts.`);
  const accounts = new Set<string>();
  for (const [account] of entries.data) {
    if (accounts.has(account)) {
      throw new MalformedClaim(
        `The token's claim ${path.join('.')} names the account ${JSON.stringify(account)} twice.`,
      );
    }
    accounts.add(account);
  }
  return entries.data;
}

const object = z.record(z.string(), z.unknown());

/** Undefined if it is not there. @throws MalformedClaim where the path leads into something that is no object */
function claimAt(claims: unknown, path: ClaimPath): unknown {
  return path.reduce((value, part, depth) => {
    if (value === undefined) return undefined;
    const parent = object.safeParse(value);
    if (parent.success) return Object.hasOwn(parent.data, part) ? parent.data[part] : undefined;
    throw new MalformedClaim(`The token's claim ${path.slice(0, depth).join('.')} must be an object.`);
  }, claims);
}
