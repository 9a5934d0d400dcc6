/**
 * Stores accounts in Redis: their names, and when each was registered. The platform that uses Meterline creates the accounts. An account is
 * registered here when the platform names it, or creates its first API key. An account that appears only in tokens or events is not registered.
 */
import { z } from 'zod';
import { REDIS_PREFIX, type RedisClient } from './redis.js';

export interface Account {
  readonly id: string;
  readonly name: string;
  /** An RFC 3339 timestamp. Undefined if the account is not registered. */
  readonly createdAt: string | undefined;
}

const READ_AT_ONCE = 1_000;

const accountRecord = z.object({ name: z.string(), createdAt: z.string() });

export class AccountDirectory {
  readonly #redis: RedisClient;
  /** A hash that maps account IDs to records in JSON. */
  readonly #key: string;

  constructor(redis: RedisClient, prefix = REDIS_PREFIX) {
    this.#redis = redis;
    this.#key = `${prefix}:accounts`;
  }

  /** Registers the account on the first call for its ID, by default with the ID as its name. A later call with a name changes the name. */
  async register(id: string, now: Date, name?: string): Promise<Account> {
    const created = { name: name ?? id, createdAt: now.toISOString() };
    const isNew = await this.#redis.hsetnx(this.#key, id, JSON.stringify(created));
    if (isNew === 1) return { id, ...created };
    const known = await this.find(id);
    if (name === undefined) return known;
    const renamed = { name, createdAt: known.createdAt ?? created.createdAt };
    await this.#redis.hset(this.#key, id, JSON.stringify(renamed));
    return { id, ...renamed };
  }

  /** Returns the account. If the account is not registered, its ID is also its name. Writes nothing, so it works while Redis is full. */
  async find(id: string): Promise<Account> {
    const text = await this.#redis.hget(this.#key, id);
    return text === null ? { id, name: id, createdAt: undefined } : toAccount(id, text);
  }

  async list(): Promise<Account[]> {
    const accounts = new Map<string, Account>();
    for await (const slice of this.#redis.hscanStream(this.#key, { count: READ_AT_ONCE })) {
      const entries = z.array(z.string()).parse(slice);
      for (let at = 0; at < entries.length; at += 2) {
        const id = entries[at] ?? '';
        // A scan may return an entry twice.
        accounts.set(id, toAccount(id, entries[at + 1] ?? ''));
      }
    }
    return [...accounts.values()];
  }

  async forget(id: string): Promise<void> {
    await this.#redis.hdel(this.#key, id);
  }
}

function toAccount(id: string, text: string): Account {
  return { id, ...accountRecord.parse(JSON.parse(text)) };
}
