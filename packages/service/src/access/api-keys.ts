/**
 * Stores API keys in Redis. Nothing is cached, so all processes reject a revoked key at once. The record of a revoked key is kept, so that
 * revoking the key again is not an error. docs/decisions/0016 explains why there is an index for each account.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { ACCOUNT_KEY_ROLES, KEY_ROLES, type KeyRole, PLATFORM_ROLES } from '@meterline/catalog';
import { z } from 'zod';
import { AccountDirectory } from './accounts.js';
import { execTransaction, REDIS_PREFIX, type RedisClient } from './redis.js';

/** A new key, including the secret, which is returned only once. */
export interface CreatedApiKey extends ApiKey {
  readonly key: string;
}

export interface NewApiKey {
  /** If undefined, the key is for all accounts and has a platform role. */
  readonly account?: string | undefined;
  /** The new name of the account. By default, the name stays unchanged, and is initially the account ID. */
  readonly accountName?: string | undefined;
  readonly role: KeyRole;
  readonly clientId: string;
  readonly expiresAt?: Date | undefined;
}

export class ApiKeyExpired extends Error {
  override readonly name = 'ApiKeyExpired';

  constructor(readonly expiresAt: string) {
    super(`the API key expired at ${expiresAt}`);
  }
}

/** The maximum number of keys of one account, including revoked and expired keys. */
export const MAX_KEYS_OF_ACCOUNT = 1_000;

export class TooManyApiKeys extends Error {
  override readonly name = 'TooManyApiKeys';

  constructor() {
    super(
      `the account (or the platform) already has ${MAX_KEYS_OF_ACCOUNT} valid API keys, the maximum; revoke some keys`,
    );
  }
}

/** Called for a malformed record, such as a record edited by hand. The key is treated as unknown. */
export type OnMalformedKey = (keyId: string, reason: string) => void;

const READ_AT_ONCE = 1_000;

/**
 * Records the last use of an API key. Does nothing if the key was erased or a later use is already recorded. KEYS: the hash of last uses.
 * ARGV: Redis key of the record, key ID, time. The record is named in ARGV, because Redis requires write access to every entry of KEYS, and
 * the collector's Redis user may not write records.
 */
const NOTE_USE = `
if redis.call('EXISTS', ARGV[1]) == 1 and ARGV[3] > (redis.call('HGET', KEYS[1], ARGV[2]) or '') then
  redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
end`;

export class ApiKeyStore {
  readonly accounts: AccountDirectory;
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #onMalformed: OnMalformedKey;

  constructor(redis: RedisClient, prefix = REDIS_PREFIX, onMalformed: OnMalformedKey = () => undefined) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#onMalformed = onMalformed;
    this.accounts = new AccountDirectory(redis, prefix);
  }

  /** Creates a key, and registers the account if this is its first key. @throws TooManyApiKeys, or ZodError for an unsuitable role */
  async create({ account, accountName, role, clientId, expiresAt }: NewApiKey, now: Date): Promise<CreatedApiKey> {
    await this.#makeRoom(account, now);
    const token = generateToken();
    const record = {
      clientId,
      ...(account !== undefined && { account }),
      role,
      createdAt: now.toISOString(),
      ...(expiresAt && { expiresAt: expiresAt.toISOString() }),
    };
    const stored = keyRecord.parse({ secretHash: hashSecret(token.secret), ...record });
    if (account !== undefined) await this.accounts.register(account, now, accountName);
    const transaction = this.#redis
      .multi()
      .hset(this.#key(token.keyId), stored)
      .zadd(this.#index(), now.getTime(), token.keyId)
      .hset(this.#indexOf(account), token.keyId, clientId);
    await execTransaction(transaction);
    return { keyId: token.keyId, ...record, key: formatToken(token) };
  }

  /** Returns undefined if the string is not a valid key, or if the key is revoked or its record malformed. @throws ApiKeyExpired */
  async authenticate(text: string, now: Date): Promise<ApiKey | undefined> {
    const token = parseToken(text);
    const record = token && (await this.#read(token.keyId));
    if (!record || record.revokedAt !== undefined || !secretMatches(token.secret, record.secretHash)) return undefined;
    if (hasExpired(record, now)) throw new ApiKeyExpired(record.expiresAt);
    return apiKey(token.keyId, record);
  }

  async ping(): Promise<void> {
    await this.#redis.exists(this.#key(''));
  }

  async noteUse(keyId: string, at: Date): Promise<void> {
    await this.#redis.eval(NOTE_USE, 1, this.#uses(), this.#key(keyId), keyId, at.toISOString());
  }

  async find(keyId: string): Promise<ApiKey | undefined> {
    const [record, lastUse] = await Promise.all([this.#read(keyId), this.#redis.hget(this.#uses(), keyId)]);
    // Earlier releases stored the last use in the record of the key.
    return record && apiKey(keyId, { ...record, lastUsedAt: lastUse ?? record.lastUsedAt });
  }

  /** Returns all keys, including revoked keys, in the order of their creation. Omits keys with malformed records. */
  async list(): Promise<ApiKey[]> {
    return this.#findAll(await this.#redis.zrange(this.#index(), 0, '-1'));
  }

  /** Like `list`, but returns only keys of one account or of one of its service accounts, in no particular order. */
  async listOf(account: string, clientId?: string): Promise<ApiKey[]> {
    const clients = Object.entries(await this.#redis.hgetall(this.#indexOf(account)));
    return this.#findAll(
      clients.flatMap(([id, client]) => (clientId === undefined || client === clientId ? [id] : [])),
    );
  }

  /** Revokes a key. If the key is already revoked, the time of the first revocation is kept. @returns whether the key exists */
  async revoke(keyId: string, now: Date): Promise<boolean> {
    if ((await this.#redis.exists(this.#key(keyId))) === 0) return false;
    await this.#redis.hsetnx(this.#key(keyId), 'revokedAt', now.toISOString());
    return true;
  }

  /** Deletes all keys of an account, including keys with malformed records. @returns the number of deleted keys */
  async eraseKeysOf(account: string): Promise<number> {
    let erased = 0;
    for (const keyId of await this.#redis.zrange(this.#index(), 0, '-1')) {
      if ((await this.#fields(keyId))['account'] !== account) continue;
      await this.#remove(keyId, account);
      erased += 1;
    }
    await this.#redis.del(this.#indexOf(account));
    return erased;
  }

  /** If the account has the maximum number of keys, deletes its oldest revoked or expired key. @throws TooManyApiKeys if all keys are valid */
  async #makeRoom(account: string | undefined, now: Date): Promise<void> {
    if ((await this.#redis.hlen(this.#indexOf(account))) < MAX_KEYS_OF_ACCOUNT) return;
    const keys = await this.#findAll(await this.#redis.hkeys(this.#indexOf(account)));
    const [oldest] = keys
      .filter((key) => key.revokedAt !== undefined || hasExpired(key, now))
      .sort((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt));
    if (!oldest) throw new TooManyApiKeys();
    await this.#remove(oldest.keyId, account);
  }

  async #remove(keyId: string, account: string | undefined): Promise<void> {
    const transaction = this.#redis.multi().del(this.#key(keyId)).zrem(this.#index(), keyId);
    await execTransaction(transaction.hdel(this.#indexOf(account), keyId).hdel(this.#uses(), keyId));
  }

  async #findAll(keyIds: readonly string[]): Promise<ApiKey[]> {
    const keys: ApiKey[] = [];
    for (let start = 0; start < keyIds.length; start += READ_AT_ONCE) {
      const found = await Promise.all(keyIds.slice(start, start + READ_AT_ONCE).map((keyId) => this.find(keyId)));
      keys.push(...found.filter((key) => key !== undefined));
    }
    return keys;
  }

  async #read(keyId: string): Promise<ApiKeyRecord | undefined> {
    const fields = await this.#fields(keyId);
    if (Object.keys(fields).length === 0) return undefined;
    const record = keyRecord.safeParse(fields);
    if (record.success) return record.data;
    this.#onMalformed(keyId, problemsOf(record.error));
    return undefined;
  }

  /** Returns no fields if the key does not exist, or if its Redis key holds another type. */
  async #fields(keyId: string): Promise<Record<string, string>> {
    try {
      return await this.#redis.hgetall(this.#key(keyId));
    } catch (error) {
      if (!isWrongType(error)) throw error;
      this.#onMalformed(keyId, 'not a hash');
      return {};
    }
  }

  #key(keyId: string): string {
    return `${this.#prefix}:api-key:${keyId}`;
  }

  /** The hash with the last use of each key. It is separate, so that the collector's Redis user may write it without access to the records. */
  #uses(): string {
    return `${this.#prefix}:api-key-uses`;
  }

  /** The sorted set of all keys, ordered by creation time. */
  #index(): string {
    return `${this.#prefix}:api-keys`;
  }

  /** The hash of one account that maps key IDs to service accounts. The empty account ID stands for keys that are for all accounts. */
  #indexOf(account = ''): string {
    return `${this.#prefix}:api-keys-of:${account}`;
  }
}

/** The code of a Redis error is the first word of its message. Source: Redis documentation, "RESP", simple errors. */
function isWrongType(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('WRONGTYPE ');
}

const SECRET_HASH = /^[0-9a-f]{64}$/;

const keyFields = z.object({
  secretHash: z.string().regex(SECRET_HASH),
  /** The service account. It is only a name within the account, and exists as long as it has a key. */
  clientId: z.string(),
  account: z.string().min(1).optional(),
  role: z.enum(KEY_ROLES),
  /** All times are RFC 3339 timestamps. */
  createdAt: z.string(),
  /** The key is rejected from this time on. Absent if the key does not expire. */
  expiresAt: z.iso.datetime().optional(),
  /** The start of the hour in which the key was last used. Absent if the key was never used. */
  lastUsedAt: z.string().optional(),
  revokedAt: z.string().optional(),
});
const keyRecord = keyFields.refine(({ account, role }) => {
  const roles: readonly KeyRole[] = account === undefined ? PLATFORM_ROLES : ACCOUNT_KEY_ROLES;
  return roles.includes(role);
});

type ApiKeyRecord = z.output<typeof keyRecord>;

export interface ApiKey extends Readonly<Omit<ApiKeyRecord, 'secretHash'>> {
  readonly keyId: string;
}

/** Describes the errors of a record by field. The values are omitted, because they include the hash of the secret. */
function problemsOf({ issues }: z.ZodError): string {
  return issues.map(({ path, code }) => `${path.join('.')}: ${code}`).join(', ');
}

function hasExpired<Key extends Pick<ApiKey, 'expiresAt'>>(key: Key, now: Date): key is Key & { expiresAt: string } {
  return key.expiresAt !== undefined && Date.parse(key.expiresAt) <= now.getTime();
}

function apiKey(keyId: string, { secretHash: _hash, ...record }: ApiKeyRecord): ApiKey {
  return { keyId, ...record };
}

/** Matches `mlk_<keyId>_<secret>`. The secret has 256 random bits, so a plain hash is enough to protect it. */
const TOKEN = /^mlk_([0-9a-f]{24})_([0-9a-f]{64})$/;

interface ApiKeyToken {
  readonly keyId: string;
  readonly secret: string;
}

export function generateToken(): ApiKeyToken {
  return { keyId: randomBytes(12).toString('hex'), secret: randomBytes(32).toString('hex') };
}

export function formatToken({ keyId, secret }: ApiKeyToken): string {
  return `mlk_${keyId}_${secret}`;
}

/** Returns undefined if the string is not an API key. The string may then be a JWT. */
export function parseToken(text: string): ApiKeyToken | undefined {
  const [, keyId, secret] = TOKEN.exec(text) ?? [];
  return keyId && secret ? { keyId, secret } : undefined;
}

export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function secretMatches(secret: string, hash: string): boolean {
  return timingSafeEqual(Buffer.from(hashSecret(secret)), Buffer.from(hash));
}
