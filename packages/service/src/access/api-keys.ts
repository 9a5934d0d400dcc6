/**
 * API keys: their records in Redis. Nothing is cached, so a revoked key is refused everywhere at once. The record of a
 * revoked key stays, so that revoking it again is no error. Why the index of an account is as it is: docs/decisions/0016.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { ACCOUNT_KEY_ROLES, KEY_ROLES, type KeyRole, PLATFORM_ROLES } from '@meterline/catalog';
import { z } from 'zod';
import { AccountDirectory } from './accounts.js';
import { committed, REDIS_PREFIX, type RedisClient } from './redis.js';

/** A key at its creation, the only moment at which its text is known. */
export interface CreatedApiKey extends ApiKey {
  readonly key: string;
}

export interface NewApiKey {
  /** Undefined: a key of the platform, for all accounts. Its role must be one of the platform's. */
  readonly account?: string | undefined;
  /** Names or renames the account; left out: it keeps its name, which is its id at first. */
  readonly accountName?: string | undefined;
  readonly role: KeyRole;
  readonly clientId: string;
  readonly expiresAt?: Date | undefined;
}

/** The text is that of a key which has expired. */
export class ApiKeyExpired extends Error {
  override readonly name = 'ApiKeyExpired';

  constructor(readonly expiresAt: string) {
    super(`the API key has expired at ${expiresAt}`);
  }
}

/** The most keys of one account, those that are revoked or have expired included. */
export const MAX_KEYS_OF_ACCOUNT = 1_000;

export class TooManyApiKeys extends Error {
  override readonly name = 'TooManyApiKeys';

  constructor() {
    super(
      `the account (or the platform) has ${MAX_KEYS_OF_ACCOUNT} valid API keys already, the most allowed; revoke some`,
    );
  }
}

/** Called with a record that is not what `create` writes, such as one that was edited by hand. Such a key is no key. */
export type OnMalformedKey = (keyId: string, reason: string) => void;

/** Records that are read at once. */
const READ_AT_ONCE = 1_000;

/**
 * KEYS: the last uses; ARGV: a key's record, its id, a time. Does not restore an erased key or move the time back. The record is
 * in ARGV, because Redis requires write access to every KEY, and a collector may not write records.
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

  /**
   * Creates a key, and with an account's first key the account.
   * @throws TooManyApiKeys; ZodError for a role that needs an account and has none, or the reverse
   */
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
    await committed(transaction);
    return { keyId: token.keyId, ...record, key: formatToken(token) };
  }

  /**
   * The valid key with this text; undefined if it is not one of ours, is wrong, or is revoked, or its record is malformed.
   * @throws ApiKeyExpired
   */
  async authenticate(text: string, now: Date): Promise<ApiKey | undefined> {
    const token = parseToken(text);
    const record = token && (await this.#read(token.keyId));
    if (!record || record.revokedAt !== undefined || !secretMatches(token.secret, record.secretHash)) return undefined;
    if (hasExpired(record, now)) throw new ApiKeyExpired(record.expiresAt);
    return apiKey(token.keyId, record);
  }

  /** Resolves when the server that has the keys answers. @throws when it does not */
  async ping(): Promise<void> {
    await this.#redis.exists(this.#key(''));
  }

  /** Writes down when the key was used, if that is later than what is known. */
  async noteUse(keyId: string, at: Date): Promise<void> {
    await this.#redis.eval(NOTE_USE, 1, this.#uses(), this.#key(keyId), keyId, at.toISOString());
  }

  /** The key, valid or revoked. */
  async find(keyId: string): Promise<ApiKey | undefined> {
    const [record, lastUse] = await Promise.all([this.#read(keyId), this.#redis.hget(this.#uses(), keyId)]);
    // Earlier releases wrote the last use into the record.
    return record && apiKey(keyId, { ...record, lastUsedAt: lastUse ?? record.lastUsedAt });
  }

  /** Every key, valid or revoked, the oldest first, but for those whose records are malformed. */
  async list(): Promise<ApiKey[]> {
    return this.#findAll(await this.#redis.zrange(this.#index(), 0, '-1'));
  }

  /** The keys of an account, or of one of its service accounts, in no order, as `list` has them. */
  async listOf(account: string, clientId?: string): Promise<ApiKey[]> {
    const clients = Object.entries(await this.#redis.hgetall(this.#indexOf(account)));
    return this.#findAll(
      clients.flatMap(([id, client]) => (clientId === undefined || client === clientId ? [id] : [])),
    );
  }

  /** @returns whether there is such a key; the first revocation's time stays */
  async revoke(keyId: string, now: Date): Promise<boolean> {
    if ((await this.#redis.exists(this.#key(keyId))) === 0) return false;
    await this.#redis.hsetnx(this.#key(keyId), 'revokedAt', now.toISOString());
    return true;
  }

  /**
   * Removes the account's keys together with their records, which a revocation keeps. A malformed record that names the
   * account goes too.
   * @returns how many there were
   */
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

  /** Removes the record of a key that nobody can use, if the account has as many keys as it may have. @throws TooManyApiKeys */
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
    await committed(transaction.hdel(this.#indexOf(account), keyId).hdel(this.#uses(), keyId));
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

  /** None if there is no such key, or something else is stored under its name. */
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

  /** When each key was last used, apart from the records: a collector may write this, and no record. */
  #uses(): string {
    return `${this.#prefix}:api-key-uses`;
  }

  /** All keys, by the time of their creation. */
  #index(): string {
    return `${this.#prefix}:api-keys`;
  }

  /** The keys of an account, or of the platform, with the service account of each. No account has an empty id. */
  #indexOf(account = ''): string {
    return `${this.#prefix}:api-keys-of:${account}`;
  }
}

/** Redis says the code of an error at the beginning of its text only. Source: Redis documentation, "RESP", simple errors. */
function isWrongType(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('WRONGTYPE ');
}

/** SHA-256 in hexadecimal. */
const SECRET_HASH = /^[0-9a-f]{64}$/;

const keyFields = z.object({
  secretHash: z.string().regex(SECRET_HASH),
  /** The service account that the key belongs to: a name within the account, there as long as it has a key. */
  clientId: z.string(),
  /** Absent for a key of the platform. */
  account: z.string().min(1).optional(),
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
const keyRecord = keyFields.refine(({ account, role }) => {
  const roles: readonly KeyRole[] = account === undefined ? PLATFORM_ROLES : ACCOUNT_KEY_ROLES;
  return roles.includes(role);
});

type ApiKeyRecord = z.output<typeof keyRecord>;

/** What others are shown of it: all but the hash of its secret. */
export interface ApiKey extends Readonly<Omit<ApiKeyRecord, 'secretHash'>> {
  readonly keyId: string;
}

/** Which fields, and what is wrong with them; never their values. */
function problemsOf({ issues }: z.ZodError): string {
  return issues.map(({ path, code }) => `${path.join('.')}: ${code}`).join(', ');
}

function hasExpired<Key extends Pick<ApiKey, 'expiresAt'>>(key: Key, now: Date): key is Key & { expiresAt: string } {
  return key.expiresAt !== undefined && Date.parse(key.expiresAt) <= now.getTime();
}

function apiKey(keyId: string, { secretHash: _hash, ...record }: ApiKeyRecord): ApiKey {
  return { keyId, ...record };
}

/** `mlk_<keyId>_<secret>`. The secret is 256 random bits, so a plain hash hides it well enough. */
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

/** Undefined when the text is not an API key of ours; it may then be a JWT. */
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
