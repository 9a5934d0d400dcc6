/** Stores saved views in Redis: one hash for each account, which maps the names of views to records in JSON. */
import { MAX_VIEWS, parseJson } from '@meterline/catalog';
import { z } from 'zod';
import { REDIS_PREFIX, type RedisClient } from './access/index.js';

export interface SavedView {
  readonly name: string;
  /** The query of the view, without the account. */
  readonly query: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly updatedAt: string;
}

export class TooManyViews extends Error {
  override readonly name = 'TooManyViews';
}

const viewRecord = z.object({ query: z.string(), createdAt: z.string(), updatedAt: z.string() });

/** Saves a view. An existing view keeps its creation time. KEYS: views of the account. ARGV: name, query, now, maximum number of views. */
const SAVE = `
local before = redis.call('HGET', KEYS[1], ARGV[1])
if not before and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then return false end
local createdAt = before and cjson.decode(before).createdAt or ARGV[3]
local record = cjson.encode({ query = ARGV[2], createdAt = createdAt, updatedAt = ARGV[3] })
redis.call('HSET', KEYS[1], ARGV[1], record)
return record`;

export class ViewStore {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor(redis: RedisClient, prefix = REDIS_PREFIX) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** Creates the view or replaces its query. @throws TooManyViews */
  async save(account: string, name: string, query: string, now: Date): Promise<SavedView> {
    const record = await this.#redis.eval(SAVE, 1, this.#keyOf(account), name, query, now.toISOString(), MAX_VIEWS);
    const view = toView(name, String(record));
    if (!view) throw new TooManyViews();
    return view;
  }

  async find(account: string, name: string): Promise<SavedView | undefined> {
    return toView(name, await this.#redis.hget(this.#keyOf(account), name));
  }

  /** Returns the account's views in no particular order. */
  async listOf(account: string): Promise<SavedView[]> {
    const records = Object.entries(await this.#redis.hgetall(this.#keyOf(account)));
    return records.flatMap(([name, record]) => toView(name, record) ?? []);
  }

  /** @returns whether the view existed */
  async remove(account: string, name: string): Promise<boolean> {
    return (await this.#redis.hdel(this.#keyOf(account), name)) === 1;
  }

  /** Deletes all views of the account. @returns the number of deleted views */
  async eraseOf(account: string): Promise<number> {
    const views = await this.listOf(account);
    await this.#redis.del(this.#keyOf(account));
    return views.length;
  }

  #keyOf(account: string): string {
    return `${this.#prefix}:views-of:${account}`;
  }
}

function toView(name: string, text: string | null): SavedView | undefined {
  const record = viewRecord.safeParse(parseJson(text ?? ''));
  return record.success ? { name, ...record.data } : undefined;
}
