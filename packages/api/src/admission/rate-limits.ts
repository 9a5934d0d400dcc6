/**
 * How many requests an account and each of its callers may send to this process, in windows that begin with the first request. Counters
 * in Redis would be writes that a durable Redis forces to its disk before each response: docs/decisions/0014.
 */
import type { ServerResponse } from 'node:http';
import { instruments } from '@meterline/service/metrics';
import type { Registry } from 'prom-client';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { tooManyRequests } from '../http/errors.js';
import { callerKey, type Principal } from './principal.js';

/** The requests that are allowed in a window of time. */
export interface RateLimit {
  readonly requests: number;
  readonly seconds: number;
}

/** Without `accountRate` callers are counted alone. */
export interface RateLimits {
  readonly callerRate: RateLimit;
  readonly accountRate?: RateLimit;
}

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
  readonly limits: RateLimits;
  readonly observeRefusal?: RefusalObserver | undefined;
}

/** A limit that applies to a request. */
interface RateWindow {
  readonly name: string;
  readonly limiter: RateLimiterMemory;
  readonly keyOf: (principal: Principal) => string;
  /** In words. */
  readonly rule: string;
  /** An item of the header. */
  readonly policy: string;
}

export class RateLimiter {
  readonly #windows: readonly RateWindow[];
  readonly #policy: string;
  readonly #observeRefusal: RefusalObserver | undefined;

  constructor({ limits, observeRefusal }: RateLimiterOptions) {
    const window = (name: string, { requests, seconds }: RateLimit, subject: string) => {
      const limiter = new RateLimiterMemory({ points: requests, duration: seconds });
      const rule = `${subject} may send ${requests} requests in ${seconds === 1 ? 'a second' : `${seconds} seconds`}`;
      return { name, limiter, rule, policy: `"${name}";q=${requests};w=${seconds}` };
    };
    // The windows are checked one after the other: what a caller is refused does not count for its account.
    const { accountRate, callerRate } = limits;
    const ofCaller = { ...window('caller', callerRate, 'You'), keyOf: callerKey };
    const ofAccount = accountRate && {
      ...window('account', accountRate, 'All callers of this account together'),
      keyOf: ({ account }: Principal) => account,
    };
    this.#windows = ofAccount ? [ofCaller, ofAccount] : [ofCaller];
    const policies = this.#windows.map(({ policy }) => policy);
    this.#policy = policies.reverse().join(', ');
    this.#observeRefusal = observeRefusal;
  }

  /**
   * Counts a request, and tells the client of its limits: draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4.
   * @throws ApiError `too_many_requests`
   */
  async count(principal: Principal, response: ServerResponse): Promise<void> {
    const items: string[] = [];
    for (const { name, limiter, keyOf, rule } of this.#windows) {
      const { isRefused, state } = await consume(limiter, keyOf(principal));
      const seconds = Math.max(1, Math.ceil(state.msBeforeNext / 1000));
      items.unshift(`"${name}";r=${state.remainingPoints};t=${seconds}`);
      response.setHeader('RateLimit-Policy', this.#policy).setHeader('RateLimit', items.join(', '));
      if (!isRefused) continue;
      this.#observeRefusal?.('rate');
      throw tooManyRequests(rule, seconds);
    }
  }
}

async function consume(limiter: RateLimiterMemory, key: string) {
  try {
    return { isRefused: false, state: await limiter.consume(key) };
  } catch (thrown) {
    if (thrown instanceof RateLimiterRes) return { isRefused: true, state: thrown };
    throw thrown;
  }
}
