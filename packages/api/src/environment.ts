/** The variables of a service that answers HTTP, besides those of every service. */
import { isIP } from 'node:net';
import { MS_PER_DAY } from '@meterline/catalog';
import { adminPortVariable, urlVariable, wholeNumberVariable } from '@meterline/service';
import { z } from 'zod';
import { type AccountClaims, claimPath, DEFAULT_ACCOUNT_CLAIMS } from './auth/account-claims.js';

/** Ranges that Express knows by name. Source: Express documentation, "trust proxy". */
const NAMED_RANGES: readonly string[] = ['loopback', 'linklocal', 'uniquelocal'];

const origin = (rule: string) => z.string().refine(isOrigin, rule);

const claimVariable = z.string().transform((text, context) => {
  const path = claimPath(text);
  if (path) return path;
  context.addIssue({ code: 'custom', message: 'must be a claim such as accounts, app_metadata.accounts or a URL' });
  return z.NEVER;
});

export const httpVariables = {
  ADMIN_PORT: adminPortVariable,
  AUTH_JWKS_URL: urlVariable(/^https?$/, 'https://auth.example.com/.well-known/jwks.json').optional(),
  AUTH_ISSUER: z.string().optional(),
  AUTH_AUDIENCE: z.string().optional(),
  /** Where a token says which accounts its subject belongs to, and with which roles. */
  AUTH_ACCOUNTS_CLAIM: claimVariable.optional(),
  /** Where a token says what the accounts are called. */
  AUTH_ACCOUNT_NAMES_CLAIM: claimVariable.optional(),
  /** The platform's roles that make an admin; every other one makes a member. */
  AUTH_ADMIN_ROLES: z
    .string()
    .transform(commaList)
    .refine((roles) => !roles.includes(''), { error: 'must list roles, such as admin,owner', abort: true })
    .optional(),
  /** The address under which callers reach the service; unset: that of each request. */
  PUBLIC_URL: origin('must be an origin such as https://billing.example.com, without a path').optional(),
  /** How long connections are still accepted after a request to stop, while /readyz says 503. */
  STOP_DELAY_MS: wholeNumberVariable(0, 60_000).default(0),
  /** How long the signing keys of tokens are used while AUTH_JWKS_URL does not answer. */
  AUTH_JWKS_KEPT_MS: wholeNumberVariable(600_000, 30 * MS_PER_DAY).default(MS_PER_DAY),
  CORS_ORIGINS: z
    .string()
    .transform(commaList)
    .pipe(z.array(origin('must list origins such as https://app.example.com, separated by commas')))
    .default([]),
  TRUST_PROXY: z.string().transform(readTrustProxy).default(false),
};

/** How many proxies stand before the service, or their addresses; false for none. */
export type TrustProxy = false | number | string[];

export interface TokenSettings {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
  readonly accountClaims: AccountClaims;
}

/** A token can be checked only against all three. */
const REQUIRED_FOR_TOKENS = ['AUTH_JWKS_URL', 'AUTH_ISSUER', 'AUTH_AUDIENCE'] as const;
const ABOUT_CLAIMS = ['AUTH_ACCOUNTS_CLAIM', 'AUTH_ACCOUNT_NAMES_CLAIM', 'AUTH_ADMIN_ROLES'] as const;
type TokenVariable = (typeof REQUIRED_FOR_TOKENS | typeof ABOUT_CLAIMS)[number];

/** An environment with its token settings in place of the variables that they come from. */
export type WithTokens<Env> = Omit<Env, TokenVariable> & {
  /** Undefined: only API keys are accepted. */
  readonly tokens: TokenSettings | undefined;
};

type TokenVariables = Pick<z.output<z.ZodObject<typeof httpVariables>>, TokenVariable>;

/** @param env that {@link requireAllOrNone} has passed */
export function withTokens<Env extends TokenVariables>(env: Env): WithTokens<Env> {
  const {
    AUTH_JWKS_URL: jwksUrl,
    AUTH_ISSUER: issuer,
    AUTH_AUDIENCE: audience,
    AUTH_ACCOUNTS_CLAIM: accounts = DEFAULT_ACCOUNT_CLAIMS.accounts,
    AUTH_ACCOUNT_NAMES_CLAIM: names,
    AUTH_ADMIN_ROLES: adminRoles,
    ...rest
  } = env;
  const accountClaims = { accounts, names, adminRoles };
  return { ...rest, tokens: jwksUrl && issuer && audience ? { jwksUrl, issuer, audience, accountClaims } : undefined };
}

/** Refines an environment with {@link httpVariables}: a token can be checked only with all that this takes. */
export function requireAllOrNone(variables: Readonly<Record<string, unknown>>, context: z.RefinementCtx): void {
  const isSet = (name: string) => variables[name] !== undefined;
  const missing = REQUIRED_FOR_TOKENS.filter((name) => !isSet(name));
  const all = REQUIRED_FOR_TOKENS.join(', ');
  const fault = (message: string) => context.addIssue({ code: 'custom', message });
  if (missing.length === REQUIRED_FOR_TOKENS.length) {
    for (const name of ABOUT_CLAIMS.filter(isSet)) fault(`${name} says how tokens are read: set ${all} too`);
  } else if (missing.length > 0) {
    fault(`${missing.join(', ')} missing: set all of ${all}, or none to accept API keys only`);
  }
}

function commaList(text: string): string[] {
  return text.split(',').map((item) => item.trim());
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text;
}

function readTrustProxy(text: string, context: z.RefinementCtx): TrustProxy {
  if (text === 'false') return false;
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const ranges = commaList(text);
  if (ranges.every(isRange)) return ranges;
  context.addIssue({
    code: 'custom',
    message: `must be a number of proxies or a list of their addresses, such as 10.0.0.0/8, or ${NAMED_RANGES.join(', ')}`,
  });
  return z.NEVER;
}

function isRange(text: string): boolean {
  if (NAMED_RANGES.includes(text)) return true;
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}
