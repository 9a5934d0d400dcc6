/**
 * What all processes of a service together allow an account and a caller: requests per second, and statements at once. One script,
 * and one round trip, counts a request and leases its statement, or counts several requests. A lease that is not renewed ends by itself, so a process
 * that was killed gives back what it had. All times are those of Redis. While it is away, a process counts requests alone.
 *
 * Requests per second with a burst follow the generic cell rate algorithm: a bucket that is filled steadily is one number,
 * the time at which it will be full again. Source: ITU-T I.371, annex A.
 */
import { randomUUID } from 'node:crypto';
import { prefixIn, type RedisClient, runScript, scriptOf } from '@meterline/access';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { oncePerTurn } from '../once-per-turn.js';
import { callerKey, type Party } from './party.js';

export interface RateLimit {
  /** Requests in the long run. */
  readonly perSecond: number;
  /** Requests at once, after a rest. */
  readonly burst: number;
}

export interface RateState {
  /** Milliseconds until a request is allowed; 0: this one is, and it was counted. */
  readonly waitMs: number;
  /** Further requests that would be allowed at once. */
  readonly remaining: number;
}

export interface PartyLimits {
  readonly accountRate: RateLimit;
  readonly callerRate: RateLimit;
  /** Statements at once; undefined where a service leases none. */
  readonly account?: number;
  readonly caller?: number;
}

export interface SharedAnswer {
  readonly account: RateState;
  readonly caller: RateState;
  /** Undefined: none was asked for, the request was refused, or there are no more: then `full` says of whom. */
  readonly lease: Lease | undefined;
  /** Who has as many statements under way as it may have, so that there was no lease. */
  readonly full?: 'account' | 'caller' | undefined;
}

export interface Lease {
  readonly id: string;
  readonly party: Party;
}

export const LEASE_MS = 10_000;

/**
 * KEYS: rate of the account, rate of the caller, leases of the account, leases of the caller. ARGV: microseconds for each
 * request of the account and its burst, the same of the caller, how many requests to count, the lease's id or an empty text, the
 * most leases of account and caller, milliseconds of a lease. As many of the requests are counted as there is room for; those that
 * are refused are counted nowhere. Returns how long these wait, what is left after the others, the lease, and how many were counted.
 * The lease: 0 when none was asked for, 1 when there is one, -1 when the account has no more, -2 when the caller has no more.
 * A thousandth makes up for what is lost in doubles.
 */
const ENTER = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function rate(full, interval, burst)
  local wait = full - burst * interval - now
  if wait > 0 then return math.ceil(wait / 1000), 0 end
  return 0, math.floor((burst * interval - (full - now)) / interval + 0.001)
end
local fulls, waits, left, counted = {}, {0, 0}, {0, 0}, 0
local wanted = tonumber(ARGV[5])
while counted < wanted do
  local next = {}
  for i = 1, 2 do
    local interval = tonumber(ARGV[2 * i - 1])
    next[i] = (fulls[i] or math.max(now, tonumber(redis.call('GET', KEYS[i]) or now))) + interval
    waits[i], left[i] = rate(next[i], interval, tonumber(ARGV[2 * i]))
  end
  if waits[1] > 0 or waits[2] > 0 then break end
  fulls = next
  counted = counted + 1
end
if counted > 0 then
  for i = 1, 2 do
    redis.call('SET', KEYS[i], string.format('%.0f', fulls[i]), 'PX', math.ceil((fulls[i] - now) / 1000))
  end
end
if counted < wanted or ARGV[6] == '' then return {waits[1], waits[2], left[1], left[2], 0, counted} end
local ms = math.floor(now / 1000)
for i = 3, 4 do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', ms)
  if redis.call('ZCARD', KEYS[i]) >= tonumber(ARGV[i + 4]) then return {0, 0, left[1], left[2], 2 - i, counted} end
end
for i = 3, 4 do
  redis.call('ZADD', KEYS[i], ms + ARGV[9], ARGV[6])
  redis.call('PEXPIRE', KEYS[i], ARGV[9])
end
return {0, 0, left[1], left[2], 1, counted}`;

const ACCOUNT_IS_FULL = -1;
const CALLER_IS_FULL = -2;

/** KEYS: leases; ARGV: milliseconds of a lease, then the id of each key's lease. */
const RENEW = `
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
for i, key in ipairs(KEYS) do
  redis.call('ZADD', key, ms + ARGV[1], ARGV[i + 1])
  redis.call('PEXPIRE', key, ARGV[1])
end`;

const ENTER_SCRIPT = scriptOf(ENTER);
const RENEW_SCRIPT = scriptOf(RENEW);

const answer = z.tuple([z.number(), z.number(), z.number(), z.number(), z.number(), z.number()]);

export class SharedLimits {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #limits: PartyLimits;
  readonly #held = new Set<Lease>();
  readonly #counted = oncePerTurn(callerKey, (party: Party, requests) => this.#ask(party, requests, ''));
  #renewal: NodeJS.Timeout | undefined;

  constructor(redis: RedisClient, prefix: string, limits: PartyLimits) {
    this.#redis = redis;
    // All keys of one prefix are on one node of a Redis Cluster, so that leases of many accounts can be renewed together.
    this.#prefix = prefixIn(redis, prefix);
    this.#limits = limits;
  }

  /**
   * Counts a request, and leases a statement for it, in one round trip.
   * @throws when Redis does not answer or refuses
   */
  async enter(party: Party, { counts, leases }: { counts: boolean; leases: boolean }): Promise<SharedAnswer> {
    if (counts && !leases) return this.#count(party);
    const id = leases ? randomUUID() : '';
    const { account, caller, leased } = await this.#ask(party, counts ? 1 : 0, id);
    if (leased > 0) return { account, caller, lease: this.#hold({ id, party }) };
    const full = leased === ACCOUNT_IS_FULL ? 'account' : leased === CALLER_IS_FULL ? 'caller' : undefined;
    return { account, caller, lease: undefined, full };
  }

  /** Ends a lease. Nobody waits for it, and one that Redis does not hear of ends by itself. */
  release(lease: Lease): void {
    if (!this.#held.delete(lease)) return;
    if (this.#held.size === 0) this.#stopRenewing();
    for (const key of this.#keys(lease.party).slice(2)) this.#redis.zrem(key, lease.id).catch(() => undefined);
  }

  /** The party's requests of one turn of the event loop are counted together; the first of them pass if not all may. */
  async #count(party: Party): Promise<SharedAnswer> {
    const { outcome, place } = this.#counted(party);
    const { account, caller, counted } = await outcome;
    if (place >= counted) return { account, caller, lease: undefined };
    const passed = ({ remaining }: RateState) => ({ waitMs: 0, remaining: remaining + counted - 1 - place });
    return { account: passed(account), caller: passed(caller), lease: undefined };
  }

  async #ask(party: Party, requests: number, leaseId: string) {
    const { accountRate, callerRate, account = 0, caller = 0 } = this.#limits;
    const reply = await runScript(this.#redis, ENTER_SCRIPT, this.#keys(party), [
      ...[microseconds(accountRate), accountRate.burst, microseconds(callerRate), callerRate.burst],
      ...[requests, leaseId, account, caller, LEASE_MS],
    ]);
    const [accountWait, callerWait, accountLeft, callerLeft, leased, counted] = answer.parse(reply);
    return {
      account: { waitMs: accountWait, remaining: accountLeft },
      caller: { waitMs: callerWait, remaining: callerLeft },
      leased,
      counted,
    };
  }

  #hold(lease: Lease): Lease {
    this.#held.add(lease);
    this.#renewal ??= setInterval(() => this.#renew(), LEASE_MS / 3).unref();
    return lease;
  }

  #stopRenewing(): void {
    clearInterval(this.#renewal);
    this.#renewal = undefined;
  }

  /** A renewal that fails costs nothing but the lease: other processes may then let one statement more through. */
  #renew(): void {
    const leases = [...this.#held].flatMap(({ id, party }) =>
      this.#keys(party)
        .slice(2)
        .map((key) => ({ id, key })),
    );
    const ids = leases.map(({ id }) => id);
    runScript(
      this.#redis,
      RENEW_SCRIPT,
      leases.map(({ key }) => key),
      [LEASE_MS, ...ids],
    ).catch(() => undefined);
  }

  #keys({ account, caller }: Party): string[] {
    const whole = `${this.#prefix}:limits:account:${account}`;
    // Service accounts of two accounts may have the same name.
    const one = `${this.#prefix}:limits:caller:${JSON.stringify([account, caller])}`;
    return [`${whole}:rate`, `${one}:rate`, `${whole}:statements`, `${one}:statements`];
  }
}

function microseconds({ perSecond }: RateLimit): number {
  return 1_000_000 / perSecond;
}

/** Bounds the memory; one that is forgotten starts again with a full burst. */
const MAX_KEYS = 10_000;

/** Makes up for what is lost in doubles. */
const ROUNDING = 0.001;

/** A bucket that a request takes from. */
export interface RatedBucket {
  readonly key: string;
  readonly limit: RateLimit;
}

/** Counts requests in this process alone, as the script does in Redis. */
export class LocalRate {
  readonly #fullAt = new LRUCache<string, number>({ max: MAX_KEYS });

  /**
   * Counts a request in all buckets, or in none if one of them refuses it.
   * @param nowMs a clock that never goes back
   * @returns the state of each bucket
   */
  count(buckets: readonly RatedBucket[], nowMs: number): RateState[] {
    const counted = buckets.map(({ key, limit: { perSecond, burst } }) => {
      const interval = 1000 / perSecond;
      const fullAt = Math.max(nowMs, this.#fullAt.get(key) ?? nowMs) + interval;
      const waitMs = Math.max(0, fullAt - burst * interval - nowMs);
      const room = Math.floor((burst * interval - (fullAt - nowMs)) / interval + ROUNDING);
      return { key, fullAt, state: { waitMs, remaining: waitMs > 0 ? 0 : room } };
    });
    const isRefused = counted.some(({ state }) => state.waitMs > 0);
    if (!isRefused) for (const { key, fullAt } of counted) this.#fullAt.set(key, fullAt);
    return counted.map(({ state }) => state);
  }
}
