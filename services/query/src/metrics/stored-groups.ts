/**
 * How many groups may be stored for later pages: in windows of 24 hours, of an account, and of one caller a quarter of that, so that
 * what one stores does not shut out the others. Counted in Redis for all processes together.
 */
import { callerKey, type Principal } from '@meterline/api';
import type { Redis } from 'ioredis';
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import { tooManyStoredGroups } from '../http/errors.js';

const WINDOW_SECONDS = 24 * 60 * 60;
const CALLER_SHARE = 1 / 4;

export class StoredGroups {
  readonly #account: RateLimiterAbstract;
  readonly #caller: RateLimiterAbstract;

  /** @param most of an account in a window */
  constructor(redis: Redis, prefix: string, most: number) {
    const limiter = (name: string, points: number) => {
      const window = { points, duration: WINDOW_SECONDS, keyPrefix: `${prefix}:stored-groups:${name}` };
      const insuranceLimiter = new RateLimiterMemory(window);
      return new RateLimiterRedis({ ...window, storeClient: redis, rejectIfRedisNotReady: true, insuranceLimiter });
    };
    this.#account = limiter('account', most);
    this.#caller = limiter('caller', Math.floor(most * CALLER_SHARE));
  }

  /** To be called before so many groups are stored. @throws ApiError `too_many_stored_groups`, which says when there is room */
  async requireRoom(principal: Principal, groups: number): Promise<void> {
    for (const [limiter, key] of this.#limits(principal)) {
      const window = await limiter.get(key);
      if ((window?.consumedPoints ?? 0) + groups <= limiter.points) continue;
      const seconds = window ? Math.ceil(window.msBeforeNext / 1000) : WINDOW_SECONDS;
      throw tooManyStoredGroups({ groups, most: limiter.points, isOfCaller: limiter === this.#caller, seconds });
    }
  }

  /** To be called when they are stored. */
  async add(principal: Principal, groups: number): Promise<void> {
    for (const [limiter, key] of this.#limits(principal)) await limiter.penalty(key, groups);
  }

  #limits(principal: Principal) {
    return [
      [this.#caller, callerKey(principal)],
      [this.#account, principal.account],
    ] as const;
  }
}
