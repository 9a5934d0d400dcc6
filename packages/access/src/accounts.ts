/**
 * Accounts in Redis: a name, and since when Meterline knows them. The platform owns accounts; one is registered here with
 * its first API key, or when a token first names it.
 */
import type { Redis } from 'ioredis';
import { z } from 'zod';

export interface Account {
  readonly id: string;
  readonly name: string;
  /** RFC 3339: when the account was registered. */
  readonly createdAt: string;
}

const accountRecord = z.object({ name: z.string(), createdAt: z.string() });

export class AccountDirectory {
  readonly #redis: Redis;
  readonly #prefix: string;

  constructor(redis: Redis, prefix: string) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** The account as registered; the first call for an id registers it under its id as its name. */
  async register(id: string, now: Date): Promise<Account> {
    const key = this.#key(id);
    const results = await this.#redis
      .multi()
      .hsetnx(key, 'name', id)
      .hsetnx(key, 'createdAt', now.toISOString())
      .hgetall(key)
      .exec();
    const [error, fields] = results?.[2] ?? [new Error('the transaction was aborted')];
    if (error) throw error;
    return { id, ...accountRecord.parse(fields) };
  }

  /** Removes the record; the next `register` creates a new one. */
  async forget(id: string): Promise<void> {
    await this.#redis.del(this.#key(id));
  }

  #key(id: string): string {
    return `${this.#prefix}:account:${id}`;
  }
}
