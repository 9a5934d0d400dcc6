/**
 * Accounts in Redis: a name, and since when Meterline knows them. The platform owns accounts; it registers one here by naming it or with
 * its first API key. An account that only tokens or events name is not registered, so nobody knows since when it exists.
 */
import { z } from 'zod';
import { committed, REDIS_PREFIX, type RedisClient } from './redis.js';

export interface Account {
  readonly id: string;
  readonly name: string;
  /** RFC 3339: when the account was registered; undefined for one that is not. */
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
   * The account as registered; the first call for an id registers it.
   * @param name the new name, also of an account that is registered already; undefined: the name stays, and is the id at first
   */
  async register(id: string, now: Date, name?: string): Promise<Account> {
    const key = this.#key(id);
    const transaction = this.#redis.multi().hsetnx(key, 'createdAt', now.toISOString());
    if (name === undefined) transaction.hsetnx(key, 'name', id);
    else transaction.hset(key, 'name', name);
    const results = await committed(transaction.hgetall(key));
    return { id, ...accountRecord.parse(results.at(-1)) };
  }

  /** The account as registered, or under its id as its name. Writes nothing, so that it works when Redis is full. */
  async find(id: string): Promise<Account> {
    const fields = await this.#redis.hgetall(this.#key(id));
    if (Object.keys(fields).length === 0) return { id, name: id, createdAt: undefined };
    return { id, ...accountRecord.parse(fields) };
  }

  /** All that are registered, in no order. It goes over every key of Redis, so it is for operators and provisioners alone. */
  async list(): Promise<Account[]> {
    const start = this.#key('');
    const ids = new Set<string>();
    for await (const keys of this.#redis.scanStream({ match: `${start}*`, count: SCANNED_AT_ONCE })) {
      for (const key of z.array(z.string()).parse(keys)) ids.add(key.slice(start.length));
    }
    const all = [...ids];
    const accounts: Account[] = [];
    // In slices, not all at once: others ask who they are over the same connection.
    for (let at = 0; at < all.length; at += READ_AT_ONCE) {
      accounts.push(...(await Promise.all(all.slice(at, at + READ_AT_ONCE).map((id) => this.find(id)))));
    }
    return accounts;
  }

  /** Removes the record; the next `register` creates a new one. */
  async forget(id: string): Promise<void> {
    await this.#redis.del(this.#key(id));
  }

  #key(id: string): string {
    return `${this.#prefix}:account:${id}`;
  }
}
