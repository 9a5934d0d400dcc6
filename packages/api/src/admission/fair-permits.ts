/**
 * Limits how many requests of a process do expensive work at the same time, and shares the permits fairly. The query service uses permits for
 * its statements, the collector for checking bodies.
 *
 * Waiting requests are ordered as follows. First the account that holds the fewest permits, then the account with the lowest recent usage,
 * then the account that was served longest ago. Within an account, the caller that was served longest ago. A long queue of one account thus
 * delays another account by at most one place. Accounts with high recent usage may hold only half of all permits, so that an account that
 * sends few requests usually finds a free permit.
 */
import { callerKey, type Principal } from './principal.js';

/** Maximum number of permits in the process, of one account, and of one caller of an account. */
export interface PermitLimits {
  readonly process: number;
  readonly account: number;
  readonly caller: number;
}

/** Releases the permit. May be called twice. */
export type Release = () => void;

interface Waiter {
  readonly principal: Principal;
  readonly grant: (release: Release) => void;
}

/** The share of the permits that busy accounts may not hold. */
const SHARE_NOT_FOR_BUSY_ACCOUNTS = 1 / 2;

/** The recent usage of accounts, in any unit. */
export interface Usage {
  of(account: string): number;
  /** An account with at least this usage is busy. */
  readonly busyFrom: number;
}

const NO_USAGE: Usage = { of: () => 0, busyFrom: Number.POSITIVE_INFINITY };

export class FairPermits {
  readonly #limits: PermitLimits;
  readonly #usage: Usage;
  /** Waiters by account and caller. Both maps are ordered by when their account or caller was served last or arrived. */
  readonly #accounts = new Map<string, Map<string, Waiter[]>>();
  /** Permits held, by account and by caller key. */
  readonly #held = new Map<string, number>();
  readonly #heldByCaller = new Map<string, number>();
  #inUse = 0;

  constructor(limits: PermitLimits, usage = NO_USAGE) {
    this.#limits = limits;
    this.#usage = usage;
  }

  get inUse(): number {
    return this.#inUse;
  }

  get waiting(): number {
    let count = 0;
    for (const account of this.#accounts.keys()) count += this.waitingOf(account);
    return count;
  }

  waitingOf(account: string): number {
    let count = 0;
    for (const waiters of this.#accounts.get(account)?.values() ?? []) count += waiters.length;
    return count;
  }

  /** Returns whether the account or the caller holds its maximum number of permits. */
  hasItsShare(principal: Principal): boolean {
    return (
      (this.#held.get(principal.account) ?? 0) >= this.#limits.account ||
      (this.#heldByCaller.get(callerKey(principal)) ?? 0) >= this.#limits.caller
    );
  }

  /** Returns a permit if one is available now, and no other request of the account waits. */
  tryAcquire(principal: Principal): Release | undefined {
    if (this.waitingOf(principal.account) > 0 || !this.#mayHave(principal)) return undefined;
    return this.#acquire(principal);
  }

  /** Waits for a permit. @throws the reason of the signal if it is aborted first */
  async acquire(principal: Principal, signal: AbortSignal): Promise<Release> {
    signal.throwIfAborted();
    const available = this.tryAcquire(principal);
    if (available) return available;
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        principal,
        grant: (release) => {
          signal.removeEventListener('abort', onAbort);
          resolve(release);
        },
      };
      const onAbort = () => {
        this.#dequeue(waiter);
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#enqueue(waiter);
      this.#serve();
    });
  }

  #mayHave(principal: Principal): boolean {
    const { process } = this.#limits;
    const isBusy = this.#usage.of(principal.account) >= this.#usage.busyFrom;
    const max = isBusy ? process - Math.floor(process * SHARE_NOT_FOR_BUSY_ACCOUNTS) : process;
    return this.#inUse < max && !this.hasItsShare(principal);
  }

  #acquire(principal: Principal): Release {
    this.#count(principal, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#count(principal, -1);
      this.#serve();
    };
  }

  #count(principal: Principal, change: 1 | -1): void {
    this.#inUse += change;
    add(this.#held, principal.account, change);
    add(this.#heldByCaller, callerKey(principal), change);
  }

  #enqueue(waiter: Waiter): void {
    const { account, caller } = waiter.principal;
    const callers = this.#accounts.get(account) ?? new Map<string, Waiter[]>();
    this.#accounts.set(account, callers);
    callers.set(caller, [...(callers.get(caller) ?? []), waiter]);
  }

  #dequeue(waiter: Waiter): void {
    const { account, caller } = waiter.principal;
    const callers = this.#accounts.get(account);
    const others = callers?.get(caller)?.filter((other) => other !== waiter);
    if (!callers || !others) return;
    if (others.length > 0) callers.set(caller, others);
    else callers.delete(caller);
    if (callers.size === 0) this.#accounts.delete(account);
  }

  #serve(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      this.#dequeue(next);
      this.#moveToEnd(next.principal);
      next.grant(this.#acquire(next.principal));
    }
  }

  #next(): Waiter | undefined {
    if (this.#inUse >= this.#limits.process) return undefined;
    let best: Waiter | undefined;
    let [fewest, least] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (const [account, callers] of this.#accounts) {
      const held = this.#held.get(account) ?? 0;
      const used = this.#usage.of(account);
      if (held > fewest || (held === fewest && used >= least)) continue;
      for (const [first] of callers.values()) {
        if (!first || !this.#mayHave(first.principal)) continue;
        [best, fewest, least] = [first, held, used];
        break;
      }
    }
    return best;
  }

  /** Moves a principal behind all others, because it was served. A Map keeps insertion order, so its keys are deleted and set again. */
  #moveToEnd({ account, caller }: Principal): void {
    const callers = this.#accounts.get(account);
    if (!callers) return;
    this.#accounts.delete(account);
    this.#accounts.set(account, callers);
    const waiters = callers.get(caller);
    if (!waiters) return;
    callers.delete(caller);
    callers.set(caller, waiters);
  }
}

function add(counts: Map<string, number>, key: string, change: number): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
