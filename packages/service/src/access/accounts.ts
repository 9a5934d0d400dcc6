/**
 * Stores the names and registration times of accounts in Redis. The platform owns accounts. An account is registered when the platform names
 * it, or creates its first API key. An account that appears only in tokens or events is not registered, and has no known creation time.
 */
import { z } from 'zod';
import { execTransaction, REDIS_PREFIX, type RedisClient } from './redis.js';

export interface Account {
  readonly id: string;
  readonly name: string;
  /** RFC 3339. Undefined if the account is not registered. */
  readonly createdAt: string | undefined;
}

const SCANNED_AT_ONCE = 1_000;
const READ_AT_ONCE = 200;

const accountRecord = z.object({ name: z.string(), createdAt: z.string() });

export class AccountDirectory {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor(redis: RedisClient, prefix = REDIS_PREFIX) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /**
   * Registers an account, or renames a registered account.
   * @param name the new name; undefined: the name stays unchanged, and is initially the ID
   */
  async register(id: string, now: Date, name?: string): Promise<Account> {
    const key = this.#key(id);
    const transaction = this.#redis.multi().hsetnx(key, 'createdAt', now.toISOString());
    if (name === undefined) transaction.hsetnx(key, 'name', id);
    else transaction.hset(key, 'name', name);
    const results = await execTransaction(transaction.hgetall(key));
    return { id, ...accountRecord.parse(results.at(-1)) };
  }

  /** Returns the account. If it is not registered, its name is its ID. Writes nothing, so it also works while Redis is full. */
  async find(id: string): Promise<Account> {
    const fields = await this.#redis.hgetall(this.#key(id));
    if (Object.keys(fields).length === 0) return { id, name: id, createdAt: undefined };
    return { id, ...accountRecord.parse(fields) };
  }

  /** Returns all registered accounts, unordered. Scans every key in Redis, so only operators and provisioners may trigger it. */
  async list(): Promise<Account[]> {
    const start = this.#key('');
    const ids = new Set<string>();
    for await (const keys of this.#redis.scanStream({ match: `${start}*`, count: SCANNED_AT_ONCE })) {
      for (const key of z.array(z.string()).parse(keys)) ids.add(key.slice(start.length));
    }
    const all = [...ids];
    const accounts: Account[] = [];
    // Read in small batches, because requests check their API keys on the same connection.
    for (let at = 0; at < all.length; at += READ_AT_ONCE) {
      accounts.push(...(await Promise.all(all.slice(at, at + READ_AT_ONCE).map((id) => this.find(id)))));
    }
    return accounts;
  }

  /** Deletes the record. The next `register` creates a new record. */
  async forget(id: string): Promise<void> {
    await this.#redis.del(this.#key(id));
  }

  #key(id: string): string {
    return `${this.#prefix}:account:${id}`;
  }
}
