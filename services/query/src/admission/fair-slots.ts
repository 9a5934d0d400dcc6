/**
 * The slots of this process for statements, and who gets the next one. Waiting requests are served in turn: each account
 * gets one slot before any account gets a second, and so does each caller within an account. So a queue of any length in
 * front of one account delays another by one place.
 */
import { accountKey, callerKey, type Party } from '@meterline/api';

/** How many slots may be taken at once: of the process, of one account, of one caller of an account. */
export interface SlotLimits {
  readonly process: number;
  readonly account: number;
  readonly caller: number;
}

/** Gives the slot back. Doing it twice is no error. */
export type Release = () => void;

interface Waiter {
  readonly party: Party;
  readonly grant: (release: Release) => void;
}

/** Callers of one account, in the order in which they are served next, each with what waits for it, the oldest first. */
type Lane = Map<string, Waiter[]>;

export class FairSlots {
  readonly #limits: SlotLimits;
  /** Accounts with waiters, in the order in which they are served next. */
  readonly #lanes = new Map<string, Lane>();
  readonly #taken = new Counts();
  #inUse = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  get inUse(): number {
    return this.#inUse;
  }

  waitingOf(account: string): number {
    let count = 0;
    for (const waiters of this.#lanes.get(account)?.values() ?? []) count += waiters.length;
    return count;
  }

  /** Whether the account or the caller has as many slots as it may have, so that a free one would not help. */
  hasItsShare(party: Party): boolean {
    return (
      this.#taken.of(accountKey(party)) >= this.#limits.account ||
      this.#taken.of(callerKey(party)) >= this.#limits.caller
    );
  }

  /** A slot at once; undefined when there is none for this party, or when others of its account wait for one. */
  tryTake(party: Party): Release | undefined {
    if (this.waitingOf(party.account) > 0 || !this.#mayHave(party)) return undefined;
    return this.#take(party);
  }

  /** Waits for a slot. @throws the signal's reason when it is aborted first */
  take(party: Party, signal: AbortSignal): Promise<Release> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        party,
        grant: (release) => {
          signal.removeEventListener('abort', onAbort);
          resolve(release);
        },
      };
      const onAbort = () => {
        this.#leave(waiter);
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#join(waiter);
      this.#serve();
    });
  }

  #mayHave(party: Party): boolean {
    return this.#inUse < this.#limits.process && !this.hasItsShare(party);
  }

  #take(party: Party): Release {
    this.#inUse += 1;
    this.#taken.add(accountKey(party), 1);
    this.#taken.add(callerKey(party), 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#inUse -= 1;
      this.#taken.add(accountKey(party), -1);
      this.#taken.add(callerKey(party), -1);
      this.#serve();
    };
  }

  #join(waiter: Waiter): void {
    const { account, caller } = waiter.party;
    const lane: Lane = this.#lanes.get(account) ?? new Map();
    this.#lanes.set(account, lane);
    lane.set(caller, [...(lane.get(caller) ?? []), waiter]);
  }

  #leave(waiter: Waiter): void {
    const { account, caller } = waiter.party;
    const lane = this.#lanes.get(account);
    const waiters = lane?.get(caller);
    if (!lane || !waiters?.includes(waiter)) return;
    const others = waiters.filter((other) => other !== waiter);
    if (others.length > 0) lane.set(caller, others);
    else lane.delete(caller);
    if (lane.size === 0) this.#lanes.delete(account);
  }

  #serve(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      this.#leave(next);
      this.#toTheEnd(next.party);
      next.grant(this.#take(next.party));
    }
  }

  #next(): Waiter | undefined {
    if (this.#inUse >= this.#limits.process) return undefined;
    for (const lane of this.#lanes.values()) {
      for (const [first] of lane.values()) if (first && this.#mayHave(first.party)) return first;
    }
    return undefined;
  }

  /** A party that was served is served again after all others. A Map keeps the order in which its keys were set. */
  #toTheEnd({ account, caller }: Party): void {
    const lane = this.#lanes.get(account);
    if (!lane) return;
    this.#lanes.delete(account);
    this.#lanes.set(account, lane);
    const waiters = lane.get(caller);
    if (!waiters) return;
    lane.delete(caller);
    lane.set(caller, waiters);
  }
}

class Counts {
  readonly #counts = new Map<string, number>();

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: string, change: number): void {
    const count = this.of(key) + change;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }
}
