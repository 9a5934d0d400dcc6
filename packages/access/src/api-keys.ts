/**
 * API keys: their text and their records in Redis. Nothing is cached, so a revoked key is refused everywhere at once. The
 * record of a revoked key stays, so that revoking it again is no error.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { ROLES, type Role } from '@meterline/catalog';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { AccountDirectory } from './accounts.js';

export interface ApiKey {
  readonly keyId: string;
  /** The service account that the key belongs to. */
  readonly clientId: string;
  readonly account: string;
  readonly role: Role;
  /** RFC 3339. */
  readonly createdAt: string;
  /** RFC 3339; absent while the key is valid. */
  readonly revokedAt?: string | undefined;
}

/** A key at its creation, the only moment at which its text is known. */
export interface CreatedApiKey extends ApiKey {
  readonly key: string;
}

export interface NewApiKey {
  readonly account: string;
  readonly role: Role;
  readonly clientId: string;
}

const keyRecord = z.object({
  secretHash: z.string(),
  clientId: z.string(),
  account: z.string(),
  role: z.enum(ROLES),
  createdAt: z.string(),
  revokedAt: z.string().optional(),
});

export class ApiKeyStore {
  readonly #redis: Redis;
  readonly #accounts: AccountDirectory;
  readonly #prefix: string;

  constructor(redis: Redis, accounts: AccountDirectory, prefix: string) {
    this.#redis = redis;
    this.#accounts = accounts;
    this.#prefix = prefix;
  }

  /** Creates a key, and with an account's first key the account. */
  async create({ account, role, clientId }: NewApiKey, now: Date): Promise<CreatedApiKey> {
    const token = generateToken();
    const createdAt = now.toISOString();
    await this.#accounts.register(account, now);
    const results = await this.#redis
      .multi()
      .hset(this.#key(token.keyId), { secretHash: hashSecret(token.secret), clientId, account, role, createdAt })
      .zadd(this.#index(), now.getTime(), token.keyId)
      .exec();
    throwFailure(results);
    return { keyId: token.keyId, clientId, account, role, createdAt, key: formatToken(token) };
  }

  /** The valid key with this text; undefined if it is not one of ours, is wrong, or is revoked. */
  async authenticate(text: string): Promise<ApiKey | undefined> {
    const token = parseToken(text);
    const record = token && (await this.#read(token.keyId));
    if (!record || record.revokedAt !== undefined || !secretMatches(token.secret, record.secretHash)) return undefined;
    return apiKey(token.keyId, record);
  }

  /** The key, valid or revoked. */
  async find(keyId: string): Promise<ApiKey | undefined> {
    const record = await this.#read(keyId);
    return record && apiKey(keyId, record);
  }

  /** Every key, valid or revoked, the oldest first. */
  async list(): Promise<ApiKey[]> {
    const keyIds = await this.#redis.zrange(this.#index(), 0, '-1');
    const keys = await Promise.all(keyIds.map((keyId) => this.find(keyId)));
    return keys.filter((key) => key !== undefined);
  }

  /** @returns whether there is such a key; the first revocation's time stays */
  async revoke(keyId: string, now: Date): Promise<boolean> {
    if ((await this.#redis.exists(this.#key(keyId))) === 0) return false;
    await this.#redis.hsetnx(this.#key(keyId), 'revokedAt', now.toISOString());
    return true;
  }

  /**
   * Removes the account's keys together with their records, which a revocation keeps.
   * @returns how many there were
   */
  async eraseKeysOf(account: string): Promise<number> {
    const keys = (await this.list()).filter((key) => key.account === account);
    for (const { keyId } of keys) {
      const results = await this.#redis.multi().del(this.#key(keyId)).zrem(this.#index(), keyId).exec();
      throwFailure(results);
    }
    return keys.length;
  }

  async #read(keyId: string) {
    const fields = await this.#redis.hgetall(this.#key(keyId));
    return Object.keys(fields).length > 0 ? keyRecord.parse(fields) : undefined;
  }

  #key(keyId: string): string {
    return `${this.#prefix}:api-key:${keyId}`;
  }

  #index(): string {
    return `${this.#prefix}:api-keys`;
  }
}

/** A transaction resolves even if one of its commands failed. */
function throwFailure(results: [error: Error | null, result: unknown][] | null): void {
  const failure = results ? results.find(([error]) => error)?.[0] : new Error('the transaction was aborted');
  if (failure) throw failure;
}

function apiKey(keyId: string, { secretHash: _hash, ...record }: z.output<typeof keyRecord>): ApiKey {
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
