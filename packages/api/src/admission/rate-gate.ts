/**
 * Counts the requests of accounts and callers, and refuses those that are too many. Redis counts for all processes together;
 * while it does not answer, this process counts alone.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { goneSignal } from '../http/client-gone.js';
import { type ApiError, tooManyRequests } from '../http/errors.js';
import { limitField, policyField, type RateStates } from './limits.js';
import type { RefusalObserver } from './metrics.js';
import { accountKey, callerKey, type Party } from './party.js';
import { LocalRate, type PartyLimits, type RateState, type SharedAnswer, type SharedLimits } from './shared-limits.js';

export interface RateGateOptions {
  readonly limits: PartyLimits;
  readonly shared: SharedLimits;
  readonly observeRefusal?: RefusalObserver | undefined;
}

/** While Redis does not answer, it is left alone for so long. */
const ALONE_MS = 1_000;
/** A caller that returns earlier than it was told waits this much longer for its refusal, so that refusals do not keep this process busy. */
const IMPATIENT_MS = 1_000;
const MAX_IMPATIENT = 500;
const MAX_CALLERS = 10_000;
const NOTHING_LEFT: RateState = { waitMs: 0, remaining: 0 };

export class RateGate {
  readonly #options: RateGateOptions;
  readonly #policy: string;
  readonly #local = new LocalRate();
  /** When callers that were refused may return. */
  readonly #refusedUntil = new LRUCache<string, number>({ max: MAX_CALLERS });
  #impatient = 0;
  #aloneUntil = 0;

  constructor(options: RateGateOptions) {
    this.#options = options;
    this.#policy = policyField(options.limits);
  }

  /**
   * Counts a request, and tells the client of its limits.
   * @throws ApiError `too_many_requests`
   */
  async pass(party: Party, response: ServerResponse): Promise<void> {
    const states = await this.ask(party, { counts: true, leases: false });
    this.tell(response, states);
    if (isRefused(states)) throw await this.refusal(party, states, goneSignal(response));
  }

  /** Of Redis, or while it does not answer of this process alone. */
  async ask(party: Party, what: { counts: boolean; leases: boolean }): Promise<SharedAnswer> {
    if (performance.now() >= this.#aloneUntil) {
      try {
        return await this.#options.shared.enter(party, what);
      } catch {
        // Redis' own outage is logged where its connection is watched.
        this.#aloneUntil = performance.now() + ALONE_MS;
      }
    }
    if (!what.counts) return { account: NOTHING_LEFT, caller: NOTHING_LEFT, lease: undefined };
    const { accountRate, callerRate } = this.#options.limits;
    const buckets = [
      { key: accountKey(party), limit: accountRate },
      { key: callerKey(party), limit: callerRate },
    ];
    const [account = NOTHING_LEFT, caller = NOTHING_LEFT] = this.#local.count(buckets, performance.now());
    return { account, caller, lease: undefined };
  }

  tell(response: ServerResponse, states: RateStates): void {
    response.setHeader('RateLimit-Policy', this.#policy);
    response.setHeader('RateLimit', limitField(states, this.#options.limits));
  }

  /** @returns the error for a request that is refused, for one that came too early after a while */
  async refusal(party: Party, states: RateStates, signal: AbortSignal): Promise<ApiError> {
    const { accountRate, callerRate } = this.#options.limits;
    this.#options.observeRefusal?.('rate');
    const key = callerKey(party);
    const isImpatient = (this.#refusedUntil.get(key) ?? 0) > performance.now();
    const waitMs = Math.max(states.account.waitMs, states.caller.waitMs);
    this.#refusedUntil.set(key, performance.now() + waitMs);
    if (isImpatient && this.#impatient < MAX_IMPATIENT) {
      this.#impatient += 1;
      await delay(IMPATIENT_MS, undefined, { signal }).catch(() => undefined);
      this.#impatient -= 1;
    }
    return states.account.waitMs > states.caller.waitMs
      ? tooManyRequests('account', accountRate, waitMs)
      : tooManyRequests('caller', callerRate, waitMs);
  }
}

export function isRefused({ account, caller }: RateStates): boolean {
  return account.waitMs > 0 || caller.waitMs > 0;
}
