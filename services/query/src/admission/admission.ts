/**
 * Who may query, how often, and how many at once: what keeps one account from being in the way of another. A request is admitted once its
 * account is known, which counts it, and acquires a permit before its first statement. How the parts work together, and why:
 * docs/decisions/0014.
 */
import type { ServerResponse } from 'node:http';
import {
  type ApiError,
  FairPermits,
  goneSignal,
  type PermitLimits,
  type Principal,
  type RateLimiter,
  type RefusalObserver,
  type Release,
} from '@meterline/api';
import { instruments } from '@meterline/service/metrics';
import { LOW_PRIORITY, type Warehouse } from '@meterline/warehouse';
import type { Registry } from 'prom-client';
import { overloaded, tooManyStatements } from '../http/errors.js';

export interface AdmissionLimits extends PermitLimits {
  /** How long a request waits for its permit. */
  readonly maxWaitMs: number;
  /** How many requests may wait in this process: of one account, and of all. An account of which none waits may always wait. */
  readonly maxWaitingOfAccount: number;
  readonly maxWaiting: number;
}

export interface AdmissionOptions {
  readonly limits: AdmissionLimits;
  readonly rates: Pick<RateLimiter, 'count'>;
  readonly warehouse: Warehouse;
  readonly observeRefusal?: RefusalObserver | undefined;
}

/** A request that was counted. */
export interface Admitted {
  /**
   * Waits for a permit, unless the request has one. @returns the warehouse for its statements, one at a time, which end when the
   * client goes
   * @throws ApiError `too_many_statements`, `overloaded`; ClientGone
   */
  acquire(): Promise<Warehouse>;
  /** When no statement runs any more. Must be called, and may be called twice. */
  release(): void;
}

export class Admission {
  readonly permits: FairPermits;
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.permits = new FairPermits(options.limits);
  }

  /**
   * Counts a request of a caller that may see the account.
   * @throws ApiError `too_many_requests`
   */
  async admit(principal: Principal, response: ServerResponse): Promise<Admitted> {
    const gone = goneSignal(response);
    await this.#options.rates.count(principal, response);
    let release: Release | undefined;
    return {
      acquire: async () => {
        release ??= await this.#acquire(principal, gone);
        gone.throwIfAborted();
        const settings = this.permits.isLong(principal.account) ? LOW_PRIORITY : {};
        return this.#options.warehouse.within({ signal: gone, settings });
      },
      release: () => {
        release?.();
        release = undefined;
      },
    };
  }

  async #acquire(principal: Principal, gone: AbortSignal): Promise<Release> {
    gone.throwIfAborted();
    const atOnce = this.permits.tryAcquire(principal);
    if (atOnce) return atOnce;
    if (!this.#mayWait(principal)) throw this.#refusal(principal);
    const deadline = AbortSignal.timeout(this.#options.limits.maxWaitMs);
    try {
      return await this.permits.acquire(principal, AbortSignal.any([gone, deadline]));
    } catch (error) {
      gone.throwIfAborted();
      if (deadline.aborted) throw this.#refusal(principal);
      throw error;
    }
  }

  #mayWait({ account }: Principal): boolean {
    const { maxWaiting, maxWaitingOfAccount } = this.#options.limits;
    const ofAccount = this.permits.waitingOf(account);
    return ofAccount === 0 || (this.permits.waiting < maxWaiting && ofAccount < maxWaitingOfAccount);
  }

  /** @returns why a request that has waited to its end, or may not wait at all, is refused */
  #refusal(principal: Principal): ApiError {
    const { limits, observeRefusal } = this.#options;
    const isItsOwn = this.permits.hasItsShare(principal);
    observeRefusal?.(isItsOwn ? 'statements' : 'overload');
    return isItsOwn ? tooManyStatements(limits.account, limits.caller) : overloaded();
  }
}

export function permitGauges(registry: Registry, { permits }: Admission): void {
  const { readAtScrape } = instruments(registry);
  readAtScrape(
    'meterline_statement_permits_in_use',
    'Requests of this process whose statements may run now.',
    () => permits.inUse,
  );
  readAtScrape('meterline_requests_waiting', 'Requests of this process that wait for a permit.', () => permits.waiting);
}
