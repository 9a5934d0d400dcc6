/**
 * Permits of a process for work that its requests do, and who gets the next one: statements of the query service, bodies that the collector
 * checks. Requests that wait are served in turn: the account with the fewest permits comes first, then the one that has used least lately,
 * then the one that was served longest ago; and within an account the caller that was served longest ago. So a queue of any length in front
 * of one account delays another by one place. Half of the permits are not for accounts that have used much lately: who asks now and
 * then finds one that is free.
 */
import { callerKey, type Principal } from './principal.js';

/** How many permits may be held at once: in this process, by one account, by one caller of an account. */
export interface PermitLimits {
  readonly process: number;
  readonly account: number;
  readonly caller: number;
}

/** Gives the permit back. Doing it twice is no error. */
export type Release = () => void;

interface Waiter {
  readonly principal: Principal;
  readonly grant: (release: Release) => void;
}

/** The share of the process's permits that is kept from busy accounts. */
const SHARE_NOT_FOR_BUSY_ACCOUNTS = 1 / 2;

/** What accounts have used lately. */
export interface Usage {
  /** In any unit. */
  of(account: string): number;
  /** From so much on an account is busy. */
  readonly busyFrom: number;
}

const NO_USAGE: Usage = { of: () => 0, busyFrom: Number.POSITIVE_INFINITY };

export class FairPermits {
  readonly #limits: PermitLimits;
  readonly #usage: Usage;
  /** Accounts with waiters, each with its callers, those with their waiters, in the order in which they were served or came. */
  readonly #accounts = new Map<string, Map<string, Waiter[]>>();
  /** By account, and by the key of a caller. */
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

  /** Whether the account or the caller has as many permits as it may have, so that a free one would not help. */
  hasItsShare(principal: Principal): boolean {
    return (
      (this.#held.get(principal.account) ?? 0) >= this.#limits.account ||
      (this.#heldByCaller.get(callerKey(principal)) ?? 0) >= this.#limits.caller
    );
  }

  /** A permit at once; undefined when there is none for this principal, or when others of its account wait for one. */
  tryAcquire(principal: Principal): Release | undefined {
    if (this.waitingOf(principal.account) > 0 || !this.#mayHave(principal)) return undefined;
    return this.#acquire(principal);
  }

  /** Waits for a permit. @throws the signal's reason when it is aborted first */
  async acquire(principal: Principal, signal: AbortSignal): Promise<Release> {
    signal.throwIfAborted();
    const atOnce = this.tryAcquire(principal);
    if (atOnce) return atOnce;
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
    const most = isBusy ? process - Math.floor(process * SHARE_NOT_FOR_BUSY_ACCOUNTS) : process;
    return this.#inUse < most && !this.hasItsShare(principal);
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
      this.#toTheEnd(next.principal);
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

  /** A principal that was served is served again after all others. A Map keeps the order in which its keys were set. */
  #toTheEnd({ account, caller }: Principal): void {
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
