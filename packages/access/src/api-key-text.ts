/** The text of an API key, and what is kept of it. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

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
