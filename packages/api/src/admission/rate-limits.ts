/**
 * Limits the rate of requests per account and per caller, within this process. A time window starts with its first request. The counters are not
 * in Redis: a Redis that must not lose data would have to sync each count to disk before the response (docs/decisions/0014).
 */
import type { ServerResponse } from 'node:http';
import { instruments } from '@meterline/service/metrics';
import type { Registry } from 'prom-client';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { tooManyRequests } from '../http/errors.js';
import { callerKey, type Principal } from './principal.js';

export interface RateLimit {
  readonly requests: number;
  readonly seconds: number;
}

/** If `accountRate` is undefined, only the rate of each caller is limited. */
export interface RateLimits {
  readonly callerRate: RateLimit;
  readonly accountRate?: RateLimit;
}

const REASONS = ['rate', 'statements', 'overload'] as const;

export type DenialObserver = (reason: (typeof REASONS)[number]) => void;

export function denialCounter(registry: Registry): DenialObserver {
  const denials = instruments(registry).counter(
    'meterline_requests_refused_total',
    'Requests denied because of a limit: rate, concurrent statements, or overload of the service.',
    'reason',
  );
  for (const reason of REASONS) denials.inc({ reason }, 0);
  return (reason) => denials.inc({ reason });
}

interface RateLimiterOptions {
  readonly limits: RateLimits;
  readonly observeDenial?: DenialObserver | undefined;
}

interface RateWindow {
  readonly name: string;
  readonly limiter: RateLimiterMemory;
  readonly keyOf: (principal: Principal) => string;
  readonly rule: string;
  readonly policy: string;
}

export class RateLimiter {
  readonly #windows: readonly RateWindow[];
  readonly #policy: string;
  readonly #observeDenial: DenialObserver | undefined;

  constructor({ limits, observeDenial }: RateLimiterOptions) {
    const window = (name: string, { requests, seconds }: RateLimit, subject: string) => {
      const limiter = new RateLimiterMemory({ points: requests, duration: seconds });
      const rule = `${subject} may send ${requests} requests in ${seconds === 1 ? 'a second' : `${seconds} seconds`}`;
      return { name, limiter, rule, policy: `"${name}";q=${requests};w=${seconds}` };
    };
    // The caller's window is checked first. A request that is denied there does not count toward the account's limit.
    const { accountRate, callerRate } = limits;
    const ofCaller = { ...window('caller', callerRate, 'You'), keyOf: callerKey };
    const ofAccount = accountRate && {
      ...window('account', accountRate, 'All callers of this account together'),
      keyOf: ({ account }: Principal) => account,
    };
    this.#windows = ofAccount ? [ofCaller, ofAccount] : [ofCaller];
    const policies = this.#windows.map(({ policy }) => policy);
    this.#policy = policies.reverse().join(', ');
    this.#observeDenial = observeDenial;
  }

  /** Counts a request, and sets the headers of draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4. @throws `too_many_requests` */
  async count(principal: Principal, response: ServerResponse): Promise<void> {
    const items: string[] = [];
    for (const { name, limiter, keyOf, rule } of this.#windows) {
      const { isDenied, state } = await consume(limiter, keyOf(principal));
      const seconds = Math.max(1, Math.ceil(state.msBeforeNext / 1000));
      items.unshift(`"${name}";r=${state.remainingPoints};t=${seconds}`);
      response.setHeader('RateLimit-Policy', this.#policy).setHeader('RateLimit', items.join(', '));
      if (!isDenied) continue;
      this.#observeDenial?.('rate');
      throw tooManyRequests(rule, seconds);
    }
  }
}

async function consume(limiter: RateLimiterMemory, key: string) {
  try {
    return { isDenied: false, state: await limiter.consume(key) };
  } catch (thrown) {
    if (thrown instanceof RateLimiterRes) return { isDenied: true, state: thrown };
    throw thrown;
  }
}
