/**
 * Limits how many requests of a process do expensive work at the same time. Each needs a permit, and the permits are shared fairly between
 * accounts. The query service uses permits for its ClickHouse statements, and the collector for checking request bodies.
 *
 * A free permit goes to the waiting account that holds the fewest permits. If several accounts hold equally many, start-time fair queueing
 * decides: each account has a clock that advances by the time its work takes, and the account whose clock is furthest behind comes first. Within
 * an account, the caller that was served longest ago comes first. An account with a long queue thus delays other accounts by at most one permit.
 *
 * Half of the permits are reserved for accounts whose work is usually short. Otherwise, long work of a few accounts could hold every permit.
 */
import { LRUCache } from 'lru-cache';
import { callerKey, type Principal } from './principal.js';

export interface PermitLimits {
  readonly process: number;
  readonly account: number;
  readonly caller: number;
  /** The work of an account counts as long if it takes more than this time on average. If undefined, all work counts as short. */
  readonly longMs?: number;
}

/** Releases the permit. A second call does nothing. */
export type Release = () => void;

interface Waiter {
  readonly principal: Principal;
  readonly grant: (release: Release) => void;
}

const RESERVED_SHARE = 1 / 2;
/** The weight of the latest work in an account's moving average. */
const LATEST_WEIGHT = 1 / 8;
const MAX_ACCOUNTS = 10_000;

interface Work {
  readonly clockMs: number;
  readonly averageMs: number;
}

export class FairPermits {
  readonly #limits: PermitLimits;
  /** Waiters by account, then by caller. Both maps start with the key that was served longest ago: new keys, and keys just served, go to the end. */
  readonly #accounts = new Map<string, Map<string, Waiter[]>>();
  readonly #held = new Map<string, number>();
  readonly #heldByCaller = new Map<string, number>();
  readonly #work = new LRUCache<string, Work>({ max: MAX_ACCOUNTS });
  #inUse = 0;
  /** The number of permits that are held by accounts whose work is not usually short. */
  #unreservedInUse = 0;
  /** The clock of the account that was served last. An idle account's clock is moved up to it, because being idle must give no advantage. */
  #clockMs = 0;

  constructor(
    limits: PermitLimits,
    readonly now = () => performance.now(),
  ) {
    this.#limits = limits;
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

  hasItsShare(principal: Principal): boolean {
    return (
      (this.#held.get(principal.account) ?? 0) >= this.#limits.account ||
      (this.#heldByCaller.get(callerKey(principal)) ?? 0) >= this.#limits.caller
    );
  }

  /** Returns a permit if one is free and no other request of the account is waiting. */
  tryAcquire(principal: Principal): Release | undefined {
    if (this.waitingOf(principal.account) > 0 || !this.#mayHave(principal)) return undefined;
    return this.#acquire(principal);
  }

  /** Waits for a permit. @throws the signal's abort reason if the signal is aborted first */
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

  isLong(account: string): boolean {
    return (this.#work.get(account)?.averageMs ?? 0) > (this.#limits.longMs ?? Number.POSITIVE_INFINITY);
  }

  /** An account without recent work does not count as short, because its first work may be long. */
  #isShort(account: string): boolean {
    return this.#limits.longMs === undefined || (this.#work.has(account) && !this.isLong(account));
  }

  #clockOf(account: string): number {
    return Math.max(this.#clockMs, this.#work.get(account)?.clockMs ?? 0);
  }

  #mayHave(principal: Principal): boolean {
    const { process } = this.#limits;
    if (this.#inUse >= process || this.hasItsShare(principal)) return false;
    return this.#isShort(principal.account) || this.#unreservedInUse < Math.ceil(process * (1 - RESERVED_SHARE));
  }

  #acquire(principal: Principal): Release {
    this.#count(principal, 1);
    const isShort = this.#isShort(principal.account);
    if (!isShort) this.#unreservedInUse += 1;
    this.#clockMs = this.#clockOf(principal.account);
    const startedMs = this.now();
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#count(principal, -1);
      if (!isShort) this.#unreservedInUse -= 1;
      this.#addWork(principal.account, this.now() - startedMs);
      this.#serve();
    };
  }

  #addWork(account: string, ms: number): void {
    const { clockMs, averageMs } = this.#work.get(account) ?? { clockMs: this.#clockMs, averageMs: ms };
    const average = averageMs + LATEST_WEIGHT * (ms - averageMs);
    this.#work.set(account, { clockMs: Math.max(clockMs, this.#clockMs) + ms, averageMs: average });
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
    let [fewest, earliest] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (const [account, callers] of this.#accounts) {
      const held = this.#held.get(account) ?? 0;
      const clock = this.#clockOf(account);
      if (held > fewest || (held === fewest && clock >= earliest)) continue;
      for (const [first] of callers.values()) {
        if (!first || !this.#mayHave(first.principal)) continue;
        [best, fewest, earliest] = [first, held, clock];
        break;
      }
    }
    return best;
  }

  /** Moves the served account and caller behind all others. A Map keeps insertion order, so deleting and setting a key moves it to the end. */
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
