/**
 * Who may ask, how often, and how many statements at once: what keeps one account from being in the way of another. A request
 * enters once its account is known, which counts it, and takes its turn before its first statement. How the parts work
 * together, and why: docs/decisions/0014.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay, setImmediate as nextTurnOfLoop } from 'node:timers/promises';
import {
  ApiError,
  accountKey,
  ClientGone,
  callerKey,
  goneSignal,
  isRefused,
  type Lease,
  limitField,
  type Party,
  type PartyLimits,
  type Policy,
  RateGate,
  type RateStates,
  type RefusalObserver,
  type SharedLimits,
} from '@meterline/api';
import type { Warehouse } from '@meterline/warehouse';
import { LRUCache } from 'lru-cache';
import { overloaded, tooManyStatements } from '../http/errors.js';
import { BUSY_SETTINGS, BusyAccounts } from './busy-accounts.js';
import { FairSlots, type Release } from './fair-slots.js';

export interface AdmissionLimits extends PartyLimits {
  /** Statements at once, of all processes together. */
  readonly account: number;
  readonly caller: number;
  /** Statements at once in this process, of all accounts. */
  readonly process: number;
  /** How long a request waits for its turn. */
  readonly maxWaitMs: number;
  /** How many requests may wait in this process: of one account, and of all. */
  readonly maxWaitingOfAccount: number;
  readonly maxWaiting: number;
}

export interface AdmissionOptions {
  readonly limits: AdmissionLimits;
  readonly shared: SharedLimits;
  readonly warehouse: Warehouse;
  readonly observeRefusal?: RefusalObserver | undefined;
}

/** A request that was counted. */
export interface Visit {
  /**
   * Waits for the request's turn. @returns the warehouse for its statements, one at a time, which end when the client goes
   * @throws ApiError `too_many_statements`, `overloaded`; ClientGone
   */
  turn(): Promise<Warehouse>;
  /**
   * As {@link turn}, but requests of one caller that have the same aim wait as one.
   * @param aim what they would do with their turn: what one of them does is done for all
   * @returns whether it is this request that has the turn; if not, another has had it meanwhile, or has given up
   * @throws as `turn`
   */
  turnFor(aim: string): Promise<boolean>;
  /** When no statement is under way any more. Must be called, and may be called twice. */
  leave(): void;
}

/** When all statements of an account or a caller run in other processes, Redis is asked again so much later. */
const RETRY_LEASE_MS = 75;
const MAX_CALLERS = 10_000;

export class Admission {
  readonly slots: FairSlots;
  readonly #options: AdmissionOptions;
  readonly #gate: RateGate;
  readonly #busy = new BusyAccounts();
  /** Of accounts, and of callers: by their keys. */
  readonly #pauses = new Map<string, Promise<void>>();
  /** Turns that a request waits for on behalf of all that have the same aim, by caller and aim. */
  readonly sharedTurns = new Map<string, Promise<unknown>>();
  /** How many requests wait, of each account: for a slot of this process, or for a statement that another process has. */
  readonly #waitingOf = new Map<string, number>();
  #waiting = 0;
  /** When Redis last said that all statements of an account or a caller were taken. */
  readonly #busyElsewhereAt = new LRUCache<string, number>({ max: MAX_CALLERS });

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#gate = new RateGate(options);
    this.slots = new FairSlots(options.limits);
  }

  /**
   * Counts a request of a caller that may see the account.
   * @param asksWarehouse whether it will take a turn
   * @throws ApiError `too_many_requests`
   */
  async enter(party: Party, response: ServerResponse, asksWarehouse: boolean): Promise<Visit> {
    const signal = goneSignal(response);
    const release = asksWarehouse ? this.slots.tryTake(party) : undefined;
    const answer = await this.#gate
      .ask(party, { counts: true, leases: release !== undefined })
      .catch((error: unknown) => {
        release?.();
        throw error;
      });
    this.#gate.tell(response, answer);
    const visit = new CountedVisit(this, party, signal, response, answer);
    if (isRefused(answer)) {
      release?.();
      throw await this.#gate.refusal(party, answer, signal);
    }
    if (answer.full) this.#pause(party, answer.full);
    if (release && !answer.full) visit.hold(release, answer.lease);
    else release?.();
    return visit;
  }

  /** How many requests of this process wait for their turn. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Waits until this process has a slot and all processes together have a statement left for the party. */
  async take(party: Party, signal: AbortSignal): Promise<readonly [Release, Lease | undefined]> {
    this.#countWaiting(party, 1);
    try {
      return await this.#take(party, signal);
    } finally {
      this.#countWaiting(party, -1);
    }
  }

  async #take(party: Party, signal: AbortSignal): Promise<readonly [Release, Lease | undefined]> {
    for (;;) {
      await this.#pauseOf(party);
      const release = await this.slots.take(party, signal);
      // Another request has learnt meanwhile that all statements of the account, or of this caller, are taken: one asks Redis for
      // all of them. A caller that has its share elsewhere must not make the others of its account wait.
      if (this.#pauseOf(party)) {
        release();
        continue;
      }
      const { lease, full } = await this.#gate.ask(party, { counts: false, leases: true }).catch((error: unknown) => {
        release();
        throw error;
      });
      if (!full) return [release, lease];
      // Before the slot goes to the next one that waits.
      this.#pause(party, full);
      release();
    }
  }

  /** @returns why a request that has waited to its end, or may not wait at all, is refused */
  refusal(party: Party, states: RateStates, response: ServerResponse): ApiError {
    const { limits } = this.#options;
    const busySince = performance.now() - limits.maxWaitMs;
    const isBusyElsewhere = keysOf(party).some((key) => (this.#busyElsewhereAt.get(key) ?? busySince) > busySince);
    const isItsOwn = this.slots.hasItsShare(party) || isBusyElsewhere;
    this.#options.observeRefusal?.(isItsOwn ? 'statements' : 'overload');
    if (!isItsOwn) return overloaded();
    const policy: Policy = limits.caller < limits.account ? 'caller-statements' : 'account-statements';
    response.setHeader('RateLimit', limitField(states, limits, policy));
    return tooManyStatements(limits.account, limits.caller);
  }

  mayWait({ account }: Party): boolean {
    const { maxWaiting, maxWaitingOfAccount } = this.#options.limits;
    return this.#waiting < maxWaiting && (this.#waitingOf.get(account) ?? 0) < maxWaitingOfAccount;
  }

  #countWaiting({ account }: Party, change: 1 | -1): void {
    const waiting = (this.#waitingOf.get(account) ?? 0) + change;
    this.#waiting += change;
    if (waiting === 0) this.#waitingOf.delete(account);
    else this.#waitingOf.set(account, waiting);
  }

  get maxWaitMs(): number {
    return this.#options.limits.maxWaitMs;
  }

  warehouseFor({ account }: Party, signal: AbortSignal): Warehouse {
    const settings = this.#busy.isBusy(account, performance.now()) ? BUSY_SETTINGS : {};
    return this.#options.warehouse.within({ signal, settings });
  }

  end({ account }: Party, lease: Lease | undefined, ms: number): void {
    if (lease) this.#options.shared.release(lease);
    this.#busy.used(account, ms, performance.now());
  }

  /** A pause that binds the party: of its account, or its own. */
  #pauseOf(party: Party): Promise<void> | undefined {
    const [account, caller] = keysOf(party);
    return this.#pauses.get(account) ?? this.#pauses.get(caller);
  }

  #pause(party: Party, full: 'account' | 'caller'): void {
    const key = full === 'account' ? accountKey(party) : callerKey(party);
    this.#busyElsewhereAt.set(key, performance.now());
    if (this.#pauses.has(key)) return;
    const pause = delay(RETRY_LEASE_MS * (0.5 + Math.random())).then(() => void this.#pauses.delete(key));
    this.#pauses.set(key, pause);
  }
}

function keysOf(party: Party): readonly [account: string, caller: string] {
  return [accountKey(party), callerKey(party)];
}

class CountedVisit implements Visit {
  readonly #admission: Admission;
  readonly #party: Party;
  readonly #gone: AbortSignal;
  readonly #response: ServerResponse;
  readonly #states: RateStates;
  #held: { readonly release: Release; readonly lease: Lease | undefined; readonly sinceMs: number } | undefined;

  constructor(admission: Admission, party: Party, gone: AbortSignal, response: ServerResponse, states: RateStates) {
    this.#admission = admission;
    this.#party = party;
    this.#gone = gone;
    this.#response = response;
    this.#states = states;
  }

  hold(release: Release, lease: Lease | undefined): void {
    this.#held = { release, lease, sinceMs: performance.now() };
  }

  async turn(): Promise<Warehouse> {
    if (!this.#held) this.hold(...(await this.#wait()));
    this.#gone.throwIfAborted();
    return this.#admission.warehouseFor(this.#party, this.#gone);
  }

  async turnFor(aim: string): Promise<boolean> {
    this.#gone.throwIfAborted();
    const { sharedTurns } = this.#admission;
    const key = JSON.stringify([callerKey(this.#party), aim]);
    // One that has its turn waits for nobody: the other may wait for what it has.
    const other = this.#held ? undefined : sharedTurns.get(key);
    if (other) {
      await this.#waitWith(other);
      return false;
    }
    const turn = this.turn();
    if (!this.#held) sharedTurns.set(key, turn);
    try {
      await turn;
    } finally {
      if (sharedTurns.get(key) === turn) sharedTurns.delete(key);
    }
    return true;
  }

  async #waitWith(other: Promise<unknown>): Promise<void> {
    try {
      await other;
    } catch (error) {
      // What is refused to one request of the caller is refused to all: each says so to its own client.
      if (error instanceof ApiError) throw this.#refusal();
      if (!(error instanceof ClientGone)) throw error;
    }
    // After the one that has the turn has begun with it.
    await nextTurnOfLoop();
  }

  leave(): void {
    if (!this.#held) return;
    const { release, lease, sinceMs } = this.#held;
    this.#held = undefined;
    this.#admission.end(this.#party, lease, performance.now() - sinceMs);
    release();
  }

  async #wait(): Promise<readonly [Release, Lease | undefined]> {
    if (!this.#admission.mayWait(this.#party)) throw this.#refusal();
    const deadline = AbortSignal.timeout(this.#admission.maxWaitMs);
    try {
      return await this.#admission.take(this.#party, AbortSignal.any([this.#gone, deadline]));
    } catch (error) {
      this.#gone.throwIfAborted();
      if (deadline.aborted) throw this.#refusal();
      throw error;
    }
  }

  #refusal(): ApiError {
    return this.#admission.refusal(this.#party, this.#states, this.#response);
  }
}
