/** The service's environment, read once. Source: DESIGN section 8. */
import { isIP } from 'node:net';
import {
  adminPortVariable,
  readEnvironment,
  serverVariables,
  urlVariable,
  wholeNumberVariable,
} from '@meterline/service';
import { z } from 'zod';

const MIN_CURSOR_SECRET = 32;

/** Ranges that Express knows by name. Source: Express documentation, "trust proxy". */
const NAMED_RANGES: readonly string[] = ['loopback', 'linklocal', 'uniquelocal'];

const origin = z.string().refine(isOrigin, 'must list origins such as https://app.example.com, separated by commas');

const environment = z
  .object({
    ...serverVariables,
    /** 0: any free port. */
    PORT: wholeNumberVariable(0, 65_535).default(8080),
    ADMIN_PORT: adminPortVariable,
    /** Signs cursors. Every process behind one address must have the same. */
    CURSOR_SECRET: z
      .string(`is missing: set it to at least ${MIN_CURSOR_SECRET} random characters`)
      .min(MIN_CURSOR_SECRET, `must have at least ${MIN_CURSOR_SECRET} characters`),
    AUTH_JWKS_URL: urlVariable(/^https?$/, 'https://auth.example.com/.well-known/jwks.json').optional(),
    AUTH_ISSUER: z.string().optional(),
    AUTH_AUDIENCE: z.string().optional(),
    /** `events`: read every answer from the events themselves, never from cells. Slow; for comparisons and emergencies. */
    METRICS_SOURCE: z.enum(['cells', 'events'], 'must be cells or events').default('cells'),
    /** Groups of answers with more than one page that one caller may have stored in 24 hours. */
    MAX_STORED_GROUPS: wholeNumberVariable(100, 1_000_000_000).default(5_000_000),
    CORS_ORIGINS: z.string().transform(commaList).pipe(z.array(origin)).default([]),
    TRUST_PROXY: z.string().transform(readTrustProxy).default(false),
  })
  .superRefine(requireAllOrNone);

/** How many proxies stand before the service, or their addresses; false for none. */
export type TrustProxy = false | number | string[];

export interface Env extends Omit<z.output<typeof environment>, 'AUTH_JWKS_URL' | 'AUTH_ISSUER' | 'AUTH_AUDIENCE'> {
  /** Undefined: only API keys are accepted. */
  readonly tokens: TokenSettings | undefined;
}

export interface TokenSettings {
  readonly jwksUrl: string;
  readonly issuer: string;
  readonly audience: string;
}

/** @throws EnvError */
export function readEnv(variables: NodeJS.ProcessEnv): Env {
  const {
    AUTH_JWKS_URL: jwksUrl,
    AUTH_ISSUER: issuer,
    AUTH_AUDIENCE: audience,
    ...rest
  } = readEnvironment(environment, variables);
  return { ...rest, tokens: jwksUrl && issuer && audience ? { jwksUrl, issuer, audience } : undefined };
}

/** A token can be checked only against all three. */
function requireAllOrNone(variables: Readonly<Record<string, unknown>>, context: z.RefinementCtx): void {
  const names = ['AUTH_JWKS_URL', 'AUTH_ISSUER', 'AUTH_AUDIENCE'];
  const missing = names.filter((name) => variables[name] === undefined);
  if (missing.length === 0 || missing.length === names.length) return;
  context.addIssue({
    code: 'custom',
    message: `${missing.join(', ')} missing: set all of ${names.join(', ')}, or none to accept API keys only`,
  });
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
