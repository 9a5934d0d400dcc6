/**
 * How many requests an account and each of its callers may send: counted in Redis for all processes of a service together, in windows that
 * begin with the first request. While Redis is away each process counts alone.
 */
import type { ServerResponse } from 'node:http';
import type { RedisClient } from '@meterline/service/access';
import { instruments } from '@meterline/service/metrics';
import type { Registry } from 'prom-client';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { tooManyRequests } from '../http/errors.js';

/** Who is counted and limited: an account, and of it a key's service account or a token's subject. */
export interface Principal {
  readonly account: string;
  readonly caller: string;
}

/** Callers of two accounts are two callers, even if they have the same name. */
export function callerKey({ account, caller }: Principal): string {
  return JSON.stringify([account, caller]);
}

/** So many requests in a window. */
interface RateLimit {
  readonly requests: number;
  readonly seconds: number;
}

export type RateLimits = Readonly<Record<'accountRate' | 'callerRate', RateLimit>>;

const REASONS = ['rate', 'statements', 'overload'] as const;

/** Called for each request that was not answered because of a limit. */
export type RefusalObserver = (reason: (typeof REASONS)[number]) => void;

export function refusalCounter(registry: Registry): RefusalObserver {
  const refusals = instruments(registry).counter(
    'meterline_requests_refused_total',
    'Requests refused because of a limit: rate, statements at once, or overload of the service.',
    'reason',
  );
  for (const reason of REASONS) refusals.inc({ reason }, 0);
  return (reason) => refusals.inc({ reason });
}

interface RateLimiterOptions {
  readonly redis: RedisClient;
  /** Of the keys in Redis. */
  readonly prefix: string;
  readonly limits: RateLimits;
  readonly observeRefusal?: RefusalObserver | undefined;
}

export class RateLimiter {
  readonly #account: WindowLimit;
  readonly #caller: WindowLimit;
  readonly #observeRefusal: RefusalObserver | undefined;

  constructor({ redis, prefix, limits, observeRefusal }: RateLimiterOptions) {
    this.#account = new WindowLimit(redis, `${prefix}:rate:account`, limits.accountRate);
    this.#caller = new WindowLimit(redis, `${prefix}:rate:caller`, limits.callerRate);
    this.#observeRefusal = observeRefusal;
  }

  /**
   * Counts a request, and tells the client of its limits: draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4.
   * @throws ApiError `too_many_requests`
   */
  async count(principal: Principal, response: ServerResponse): Promise<void> {
    // One after the other: what a caller is refused does not count for its account.
    const caller = await this.#caller.count(callerKey(principal));
    const account = caller.isRefused ? undefined : await this.#account.count(principal.account);
    const items = [account && this.#account.item('account', account), this.#caller.item('caller', caller)];
    response.setHeader('RateLimit-Policy', `${this.#account.policy('account')}, ${this.#caller.policy('caller')}`);
    response.setHeader('RateLimit', items.filter((item) => item !== undefined).join(', '));
    if (!caller.isRefused && !account?.isRefused) return;
    this.#observeRefusal?.('rate');
    if (account?.isRefused) throw this.#account.refusal('All callers of this account together', account);
    throw this.#caller.refusal('You', caller);
  }
}

interface WindowState {
  readonly isRefused: boolean;
  /** Further requests that are allowed in this window. */
  readonly remaining: number;
  /** Until the window ends. */
  readonly seconds: number;
}

class WindowLimit {
  readonly #limiter: RateLimiterRedis;
  readonly #limit: RateLimit;

  constructor(redis: RedisClient, keyPrefix: string, limit: RateLimit) {
    this.#limit = limit;
    const window = { points: limit.requests, duration: limit.seconds, keyPrefix };
    this.#limiter = new RateLimiterRedis({
      ...window,
      storeClient: redis,
      rejectIfRedisNotReady: true,
      // What is refused is refused without Redis until the window ends.
      inMemoryBlockOnConsumed: limit.requests + 1,
      insuranceLimiter: new RateLimiterMemory(window),
    });
  }

  async count(key: string): Promise<WindowState> {
    try {
      return stateOf(await this.#limiter.consume(key), false);
    } catch (thrown) {
      if (thrown instanceof RateLimiterRes) return stateOf(thrown, true);
      throw thrown;
    }
  }

  policy(name: string): string {
    return `"${name}";q=${this.#limit.requests};w=${this.#limit.seconds}`;
  }

  item(name: string, { remaining, seconds }: WindowState): string {
    return `"${name}";r=${remaining};t=${seconds}`;
  }

  refusal(subject: string, { seconds }: WindowState) {
    const { requests, seconds: ofWindow } = this.#limit;
    const window = ofWindow === 1 ? 'a second' : `${ofWindow} seconds`;
    return tooManyRequests(`${subject} may send ${requests} requests in ${window}`, seconds);
  }
}

function stateOf({ remainingPoints, msBeforeNext }: RateLimiterRes, isRefused: boolean): WindowState {
  return { isRefused, remaining: remainingPoints, seconds: Math.max(1, Math.ceil(msBeforeNext / 1000)) };
}
