/** Reads the environment variables that all HTTP services share. */
import { constant, webAddressVariable, wholeNumberVariable } from '@meterline/service/environment';
import { z } from 'zod';
import type { RateLimit, RateLimits } from './admission/rate-limits.js';
import { claimPath, DEFAULT_ACCOUNT_CLAIMS } from './auth/account-claims.js';
import type { TokenVerifierOptions } from './auth/tokens.js';
import { KEEP_ALIVE_MS } from './server.js';

/**
 * Matches addresses of proxies. Express alone would also accept octal and hexadecimal addresses, and could thus trust the wrong address.
 * Ranges that end in `/0` are excluded because Express rejects them. Source: Express documentation, "trust proxy".
 */
const proxyRange = z.union([
  z.enum(['loopback', 'linklocal', 'uniquelocal']),
  ...[z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()].map((range) => range.refine((text) => !text.endsWith('/0'))),
]);

const origin = (rule: string) => z.string().refine(isOrigin, rule);

const claimVariable = z.string().transform((text, context) => {
  const path = claimPath(text);
  if (path) return path;
  context.addIssue({ code: 'custom', message: 'must be a claim such as accounts, app_metadata.accounts or a URL' });
  return z.NEVER;
});

export function originsVariable() {
  return z
    .string()
    .transform(commaList)
    .pipe(z.array(origin('must list origins such as https://app.example.com, separated by commas')))
    .default([]);
}

export function rateVariable(perSecond: number) {
  return {
    ACCOUNT_RATE: wholeNumberVariable(1, 1_000_000)
      .default(perSecond)
      .describe(
        'Maximum requests per second of one account, in each process. One API key, or one subject of tokens, may send half as many.',
      ),
  };
}

export function burstConstant(seconds: number) {
  const reason =
    'Length of the rate window: an account or caller may send the requests of this many seconds in one burst.';
  return { burstSeconds: constant(seconds, reason) };
}

/** The share of the account's limit that one caller may use. It keeps one caller from locking out the other callers of the account. */
const CALLER_SHARE = 1 / 2;

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
      'URL of the key set (JWKS) that verifies OAuth2 access tokens. Set it together with `AUTH_ISSUER` and `AUTH_AUDIENCE`, or set none of the three.',
    ),
  AUTH_ISSUER: z.string().optional().describe('Required value of the claim `iss`.'),
  AUTH_AUDIENCE: z.string().optional().describe('Required value of the claim `aud`.'),
  AUTH_ACCOUNTS_CLAIM: claimVariable
    .optional()
    .describe(
      'Claim with the accounts and roles of the caller: a name, a path such as `app_metadata.accounts`, or a URL. Not set: `accounts`.',
    ),
  AUTH_ACCOUNT_NAMES_CLAIM: claimVariable.optional().describe('Claim with the display names of accounts.'),
  AUTH_ADMIN_ROLES: z
    .string()
    .transform(commaList)
    .refine((roles) => !roles.includes(''), { error: 'must list roles, such as admin,owner', abort: true })
    .optional()
    .describe(
      'Roles in `AUTH_ACCOUNTS_CLAIM` that make the caller an admin, such as `admin,owner`. All other roles make the caller a member. Not ' +
        'set: the roles are `admin` and `member`, and other roles give no access.',
    ),
  AUTH_PLATFORM_ROLES_CLAIM: claimVariable
    .optional()
    .describe(
      'Claim with roles for all accounts: `operator`, `provisioner` or `emitter`, or a list of them. Not set: tokens have no such roles. ' +
        'Use a claim that only the authorization server can set.',
    ),
  PUBLIC_URL: webAddressVariable('https://billing.example.com').describe(
    'Public base URL of the service, for the metadata about tokens. Default: the origin of each request.',
  ),
  STOP_DELAY_MS: wholeNumberVariable(0, 60_000)
    .default(0)
    .describe('How long to keep accepting connections after SIGTERM, while `/readyz` returns 503.'),
  KEEP_ALIVE_MS: wholeNumberVariable(1_000, 7_200_000)
    .default(KEEP_ALIVE_MS)
    .describe('How long to keep idle connections open. Must be longer than the idle timeout of the load balancer.'),
  CORS_ORIGINS: originsVariable().describe('Origins whose web pages may call the API, separated by commas.'),
  TRUST_PROXY: z
    .string()
    .transform(readTrustProxy)
    .default(false)
    .describe('Number of proxies in front of the service, or their addresses.'),
};

export type TrustProxy = false | number | string[];

const REQUIRED_FOR_TOKENS = ['AUTH_JWKS_URL', 'AUTH_ISSUER', 'AUTH_AUDIENCE'] as const;
const ABOUT_CLAIMS = [
  'AUTH_ACCOUNTS_CLAIM',
  'AUTH_ACCOUNT_NAMES_CLAIM',
  'AUTH_ADMIN_ROLES',
  'AUTH_PLATFORM_ROLES_CLAIM',
] as const;
type TokenVariable = (typeof REQUIRED_FOR_TOKENS | typeof ABOUT_CLAIMS)[number];

/** The environment with all settings for tokens in the object `tokens`, instead of in separate variables. */
export type WithTokens<Env> = Omit<Env, TokenVariable> & {
  readonly tokens: Omit<TokenVerifierOptions, 'clock' | 'log'> | undefined;
};

type TokenVariables = Pick<z.output<z.ZodObject<typeof httpVariables>>, TokenVariable>;

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
    for (const name of strays) problem(`${name} has no effect without tokens: also set ${all}`);
  } else if (missing.length > 0) {
    problem(`${missing.join(', ')} missing: set all of ${all}, or none of them to accept API keys only`);
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
