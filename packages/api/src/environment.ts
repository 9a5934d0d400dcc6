/** The variables of a service that answers HTTP, besides those of every service. */
import { constant, wholeNumberVariable } from '@meterline/service/environment';
import { z } from 'zod';
import type { RateLimit, RateLimits } from './admission/rate-limits.js';
import { claimPath, DEFAULT_ACCOUNT_CLAIMS } from './auth/account-claims.js';
import type { TokenVerifierOptions } from './auth/tokens.js';
import { KEEP_ALIVE_MS } from './server.js';

/**
 * Addresses of proxies. Express alone would also take octal and hexadecimal ones, and trust others than were meant; it takes no `/0`.
 * Source: Express documentation, "trust proxy".
 */
const proxyRange = z.union([
  z.enum(['loopback', 'linklocal', 'uniquelocal']),
  ...[z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()].map((range) => range.refine((text) => !text.endsWith('/0'))),
]);

/** The address becomes part of shell commands, so it has none of the characters with a meaning there. */
const WEB_ADDRESS = /^https?:\/\/[\w.:[\]-]+(\/[\w.~%-]+)*\/?$/;

/** The address of a service, without a slash at its end. A proxy may serve it under a path of its own. */
export function webAddressVariable(example: string) {
  return z
    .string()
    .regex(WEB_ADDRESS, `must be a URL such as ${example}`)
    .transform((url) => url.replace(/\/$/, ''))
    .optional();
}

const origin = (rule: string) => z.string().refine(isOrigin, rule);

const claimVariable = z.string().transform((text, context) => {
  const path = claimPath(text);
  if (path) return path;
  context.addIssue({ code: 'custom', message: 'must be a claim such as accounts, app_metadata.accounts or a URL' });
  return z.NEVER;
});

/** Origins with commas between them; by default none. */
export function originsVariable() {
  return z
    .string()
    .transform(commaList)
    .pipe(z.array(origin('must list origins such as https://app.example.com, separated by commas')))
    .default([]);
}

/** @param perSecond requests of an account by default */
export function rateVariable(perSecond: number) {
  return {
    ACCOUNT_RATE: wholeNumberVariable(1, 1_000_000)
      .default(perSecond)
      .describe(
        'Requests of an account per second that a process takes; half as many of a key of it, or of the subject of tokens.',
      ),
  };
}

/** @param seconds how many seconds of its rate an account or a caller may spend at once, after a rest */
export function burstConstant(seconds: number) {
  const reason = 'An account or a caller may send the requests of so many seconds at once, after a rest.';
  return { burstSeconds: constant(seconds, reason) };
}

/** The share of its account's limit that one caller may use, so that it does not shut out the others. */
const CALLER_SHARE = 1 / 2;

/** What the rate allows. */
export function rateLimits({
  ACCOUNT_RATE,
  METERLINE_CONSTANTS: constants,
}: {
  readonly ACCOUNT_RATE: number;
  readonly METERLINE_CONSTANTS: { readonly burstSeconds: number };
}): RateLimits {
  const accountRate = rateLimit(ACCOUNT_RATE, constants.burstSeconds);
  return { accountRate, callerRate: { ...accountRate, requests: Math.ceil(accountRate.requests * CALLER_SHARE) } };
}

export function rateLimit(perSecond: number, burstSeconds: number): RateLimit {
  const seconds = Math.max(1, burstSeconds);
  return { requests: perSecond * seconds, seconds };
}

export const httpVariables = {
  AUTH_JWKS_URL: z
    .url({ protocol: /^https?$/, error: 'must be a URL such as https://auth.example.com/.well-known/jwks.json' })
    .optional()
    .describe(
      'Where the keys of OAuth2 access tokens are published. With `AUTH_ISSUER` and `AUTH_AUDIENCE`, or none of the three.',
    ),
  AUTH_ISSUER: z.string().optional().describe('The `iss` of tokens.'),
  AUTH_AUDIENCE: z.string().optional().describe('The `aud` of tokens.'),
  AUTH_ACCOUNTS_CLAIM: claimVariable
    .optional()
    .describe(
      'The claim that names accounts and roles: a name, a path such as `app_metadata.accounts`, or a URL; not set: `accounts`.',
    ),
  AUTH_ACCOUNT_NAMES_CLAIM: claimVariable.optional().describe('The claim that names accounts for people.'),
  AUTH_ADMIN_ROLES: z
    .string()
    .transform(commaList)
    .refine((roles) => !roles.includes(''), { error: 'must list roles, such as admin,owner', abort: true })
    .optional()
    .describe(
      'The roles in that claim that make an admin, such as `admin,owner`; every other one makes a member. Not set: `admin` and ' +
        '`member` are the roles, and any other gives no access.',
    ),
  AUTH_PLATFORM_ROLES_CLAIM: claimVariable
    .optional()
    .describe(
      'The claim with roles for all accounts: `operator`, `provisioner` or `emitter`, or a list of them. Not set: tokens have no such role. ' +
        'Name a claim that only the authorisation server sets.',
    ),
  PUBLIC_URL: webAddressVariable('https://billing.example.com').describe(
    'Public base URL of the service, in what it says about tokens. Default: that of each request.',
  ),
  STOP_DELAY_MS: wholeNumberVariable(0, 60_000)
    .default(0)
    .describe('How long connections are still accepted after SIGTERM, while `/readyz` says 503.'),
  KEEP_ALIVE_MS: wholeNumberVariable(1_000, 7_200_000)
    .default(KEEP_ALIVE_MS)
    .describe('How long an idle connection is kept: longer than the load balancer in front keeps it.'),
  CORS_ORIGINS: originsVariable().describe('Origins whose web pages may call the API, with commas between them.'),
  TRUST_PROXY: z
    .string()
    .transform(readTrustProxy)
    .default(false)
    .describe('How many proxies stand in front of the service, or their addresses.'),
};

/** How many proxies stand before the service, or their addresses; false for none. */
export type TrustProxy = false | number | string[];

/** A token can be checked only against all three. */
const REQUIRED_FOR_TOKENS = ['AUTH_JWKS_URL', 'AUTH_ISSUER', 'AUTH_AUDIENCE'] as const;
const ABOUT_CLAIMS = [
  'AUTH_ACCOUNTS_CLAIM',
  'AUTH_ACCOUNT_NAMES_CLAIM',
  'AUTH_ADMIN_ROLES',
  'AUTH_PLATFORM_ROLES_CLAIM',
] as const;
type TokenVariable = (typeof REQUIRED_FOR_TOKENS | typeof ABOUT_CLAIMS)[number];

/** An environment with its token settings in place of the variables that they come from. */
export type WithTokens<Env> = Omit<Env, TokenVariable> & {
  /** Undefined: only API keys are accepted. */
  readonly tokens: Omit<TokenVerifierOptions, 'clock' | 'log'> | undefined;
};

type TokenVariables = Pick<z.output<z.ZodObject<typeof httpVariables>>, TokenVariable>;

/** Transforms an environment with {@link httpVariables}: a token can be checked only with all that this takes. */
export function withTokens<Env extends TokenVariables>(env: Env, context: z.RefinementCtx): WithTokens<Env> {
  const {
    AUTH_JWKS_URL: jwksUrl,
    AUTH_ISSUER: issuer,
    AUTH_AUDIENCE: audience,
    AUTH_ACCOUNTS_CLAIM: accounts = DEFAULT_ACCOUNT_CLAIMS.accounts,
    AUTH_ACCOUNT_NAMES_CLAIM: names,
    AUTH_ADMIN_ROLES: adminRoles,
    AUTH_PLATFORM_ROLES_CLAIM: platformRoles,
    ...rest
  } = env;
  const missing = REQUIRED_FOR_TOKENS.filter((name) => env[name] === undefined);
  const all = REQUIRED_FOR_TOKENS.join(', ');
  const problem = (message: string) => context.addIssue({ code: 'custom', message });
  if (missing.length === REQUIRED_FOR_TOKENS.length) {
    const strays = ABOUT_CLAIMS.filter((name) => env[name] !== undefined);
    for (const name of strays) problem(`${name} says how tokens are read: set ${all} too`);
  } else if (missing.length > 0) {
    problem(`${missing.join(', ')} missing: set all of ${all}, or none to accept API keys only`);
  }
  const accountClaims = { accounts, names, adminRoles, platformRoles };
  return { ...rest, tokens: jwksUrl && issuer && audience ? { jwksUrl, issuer, audience, accountClaims } : undefined };
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
  const ranges = z.array(proxyRange).safeParse(commaList(text));
  if (ranges.success) return ranges.data;
  const message =
    'must be a number of proxies or a list of their addresses, such as 10.0.0.0/8, or loopback, linklocal, uniquelocal';
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}
