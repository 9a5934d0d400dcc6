/** An API key: its text, what Redis keeps of it, and what others are shown of it: all but the hash of its secret. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { KEY_ROLES } from '@meterline/catalog';
import { z } from 'zod';

/** SHA-256 in hexadecimal. */
const SECRET_HASH = /^[0-9a-f]{64}$/;

export const keyRecord = z.object({
  secretHash: z.string().regex(SECRET_HASH),
  /** The service account that the key belongs to: a name within the account, there as long as it has a key. */
  clientId: z.string(),
  account: z.string(),
  role: z.enum(KEY_ROLES),
  /** RFC 3339, as all times here. */
  createdAt: z.string(),
  /** From then on the key is refused; absent for one that does not expire. */
  expiresAt: z.iso.datetime().optional(),
  /** The hour, by its beginning, in which the key was last used; absent for one that never was. */
  lastUsedAt: z.string().optional(),
  /** Absent while the key is valid. */
  revokedAt: z.string().optional(),
});

export type ApiKeyRecord = z.output<typeof keyRecord>;

export interface ApiKey extends Readonly<Omit<ApiKeyRecord, 'secretHash'>> {
  readonly keyId: string;
}

/** Which fields, and what is wrong with them; never their values. */
export function faultsOf({ issues }: z.ZodError): string {
  return issues.map(({ path, code }) => `${path.join('.')}: ${code}`).join(', ');
}

export function hasExpired<Key extends Pick<ApiKey, 'expiresAt'>>(
  key: Key,
  now: Date,
): key is Key & { expiresAt: string } {
  return key.expiresAt !== undefined && Date.parse(key.expiresAt) <= now.getTime();
}

export function apiKey(keyId: string, { secretHash: _hash, ...record }: ApiKeyRecord): ApiKey {
  return { keyId, ...record };
}

/** `mlk_<keyId>_<secret>`. The secret is 256 random bits, so a plain hash hides it well enough. */
const TOKEN = /^mlk_([0-9a-f]{24})_([0-9a-f]{64})$/;

export interface ApiKeyToken {
  readonly keyId: string;
  readonly secret: string;
}

export function generateToken(): ApiKeyToken {
  return { keyId: randomBytes(12).toString('hex'), secret: randomBytes(32).toString('hex') };
}

export function formatToken({ keyId, secret }: ApiKeyToken): string {
  return `mlk_${keyId}_${secret}`;
}

/** Undefined when the text is not an API key of ours; it may then be a JWT. */
export function parseToken(text: string): ApiKeyToken | undefined {
  const [, keyId, secret] = TOKEN.exec(text) ?? [];
  return keyId && secret ? { keyId, secret } : undefined;
}

export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

export function secretMatches(secret: string, hash: string): boolean {
  return timingSafeEqual(Buffer.from(hashSecret(secret)), Buffer.from(hash));
}
