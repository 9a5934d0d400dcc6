/**
 * Limits how much each account can use ClickHouse, so that one account cannot slow down others. Once the account of a request is known, the
 * request counts for the rate limits. Before its first statement, it acquires one of a limited number of permits. Design:
 * docs/decisions/0014.
 */
import type { ServerResponse } from 'node:http';
import {
  type ApiError,
  type DenialObserver,
  FairPermits,
  goneSignal,
  type PermitLimits,
  type Principal,
  type RateLimiter,
  type Release,
} from '@meterline/api';
import { instruments } from '@meterline/service/metrics';
import { LOW_PRIORITY, type Warehouse } from '@meterline/warehouse';
import type { Registry } from 'prom-client';
import { overloaded, tooManyStatements } from '../http/errors.js';

export interface AdmissionLimits extends PermitLimits {
  readonly maxWaitMs: number;
  /** Maximum number of waiting requests of one account. If none of its requests waits yet, a request may always wait. */
  readonly maxWaitingOfAccount: number;
  readonly maxWaiting: number;
}

export interface AdmissionOptions {
  readonly limits: AdmissionLimits;
  readonly rates: Pick<RateLimiter, 'count'>;
  readonly warehouse: Warehouse;
  readonly observeDenial?: DenialObserver | undefined;
}

export interface Admitted {
  /**
   * Waits for a permit, unless the request already has one. Returns the connection to ClickHouse for the request's statements, which must
   * run one at a time. If the client disconnects, the statements are canceled.
   * @throws ApiError `too_many_statements` or `overloaded`; ClientGone
   */
  acquire(): Promise<Warehouse>;
  /** Releases the permit. Must be called after the last statement, and may be called twice. */
  release(): void;
}

export class Admission {
  readonly permits: FairPermits;
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.permits = new FairPermits(options.limits);
  }

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
    const available = this.permits.tryAcquire(principal);
    if (available) return available;
    if (!this.#mayWait(principal)) throw this.#denial(principal);
    const deadline = AbortSignal.timeout(this.#options.limits.maxWaitMs);
    try {
      return await this.permits.acquire(principal, AbortSignal.any([gone, deadline]));
    } catch (error) {
      gone.throwIfAborted();
      if (deadline.aborted) throw this.#denial(principal);
      throw error;
    }
  }

  #mayWait({ account }: Principal): boolean {
    const { maxWaiting, maxWaitingOfAccount } = this.#options.limits;
    const ofAccount = this.permits.waitingOf(account);
    return ofAccount === 0 || (this.permits.waiting < maxWaiting && ofAccount < maxWaitingOfAccount);
  }

  /** Returns the error for a request that got no permit: 429 if its account or caller already holds its maximum, otherwise 503. */
  #denial(principal: Principal): ApiError {
    const { limits, observeDenial } = this.#options;
    const hasItsShare = this.permits.hasItsShare(principal);
    observeDenial?.(hasItsShare ? 'statements' : 'overload');
    return hasItsShare ? tooManyStatements(limits.account, limits.caller) : overloaded();
  }
}

export function permitGauges(registry: Registry, { permits }: Admission): void {
  const { readAtScrape } = instruments(registry);
  readAtScrape(
    'meterline_statement_permits_in_use',
    'Requests of this process that hold a permit for statements.',
    () => permits.inUse,
  );
  readAtScrape('meterline_requests_waiting', 'Requests of this process that wait for a permit.', () => permits.waiting);
}
