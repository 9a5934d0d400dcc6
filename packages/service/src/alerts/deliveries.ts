/**
 * Webhooks to be delivered, in Redis: the outbox, and what became of each. A webhook is written once, together with the mark that its
 * threshold has fired; a process that delivers takes from the pending ones those that are due, so none is missed whatever is killed. Kept for 30
 * days, of an account the newest 1,000.
 */
import { createHash, randomBytes } from 'node:crypto';
import { DELIVERY_STATES, type DeliveryState, type EpochMs, MS_PER_DAY } from '@meterline/catalog';
import { z } from 'zod';
import { execTransaction, type RedisClient } from '../access/index.js';
import type { Alert } from './alert.js';

const KEPT_MS = 30 * MS_PER_DAY;
const MAX_DELIVERIES = 1_000;
/** Thresholds that an alert may have fired in the 70 days that this is kept: who defines it again and again gets no more of them. */
export const MAX_MARKS = 5_000;
/** When a delivery is due that is new, or that somebody wants to be sent again: now, whatever was planned. */
const AT_ONCE = 0;

const deliveryRecord = z.object({
  account: z.string(),
  alertId: z.string(),
  /** The body, the same text at every attempt. */
  payload: z.string(),
  createdAt: z.string(),
  state: z.enum(DELIVERY_STATES),
  attempts: z.coerce.number(),
  /** How often somebody has wanted it to be sent again. */
  resends: z.coerce.number().default(0),
  lastAttemptAt: z.string().optional(),
  lastOutcome: z.string().optional(),
  /** Whoever may see less does not see it: what an alert of some workspaces tells is for admins, also when it has become one of all. */
  seenBy: z.enum(['admin', 'member']).default('admin'),
});

export interface Delivery extends z.output<typeof deliveryRecord> {
  /** `webhook-id` of every attempt: a receiver knows by it what it has seen. */
  readonly id: string;
}

/** `already`: it has fired before. `changed`: the alert is another now, or gone. `full`: the alert has {@link MAX_MARKS} marks. */
const FIRE_OUTCOMES = ['fired', 'already', 'changed', 'full'] as const;
export type FireOutcome = (typeof FIRE_OUTCOMES)[number];

/** A mark to set. It is set only if the alert has not changed since it was read. */
export interface CrossingMark {
  readonly alertsKey: string;
  readonly marksKey: string;
  readonly field: string;
  readonly mark: string;
}

export interface Attempt {
  readonly at: Date;
  /** A status or a reason. */
  readonly outcome: string;
  readonly state: DeliveryState;
  /** When to look whether anyone has tried again, if the delivery is pending. */
  readonly dueAt: EpochMs;
}

/** KEYS: the delivery, the account's, pending; ARGV: id, name in the index, milliseconds of creation and of keeping, fields and values. */
const ADD = `
local fields = {}
for at = 5, #ARGV do fields[at - 4] = ARGV[at] end
redis.call('HSET', KEYS[1], unpack(fields))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('ZADD', KEYS[3], ${AT_ONCE}, ARGV[1])`;
/**
 * Besides KEYS: all alerts, the alert's marks; before ARGV: alert's id, updatedAt, field, mark. The record may have members of a newer
 * release, so only its updatedAt is compared, which is another after each change.
 */
const ADD_CROSSING = `
local record = redis.call('HGET', KEYS[4], ARGV[1])
if not record or cjson.decode(record).updatedAt ~= ARGV[2] then return 'changed' end
if redis.call('HEXISTS', KEYS[5], ARGV[3]) == 1 then return 'already' end
if redis.call('HLEN', KEYS[5]) >= ${MAX_MARKS} then return 'full' end
redis.call('HSET', KEYS[5], ARGV[3], ARGV[4])
for _ = 1, 4 do table.remove(ARGV, 1) end
${ADD}
return 'fired'`;
/** KEYS: the delivery, pending; ARGV: id. */
const SEND_AGAIN = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], 'resends', 1)
redis.call('HSET', KEYS[1], 'state', 'pending')
redis.call('ZADD', KEYS[2], ${AT_ONCE}, ARGV[1])
return 1`;
/** As queue.ts has it for BullMQ's scripts: the outbox is emptied then too. What was delivered and is not noted would be sent again. */
const RUNS_WHEN_FULL = '#!lua flags=allow-oom';
/**
 * KEYS: the delivery, pending; ARGV: id, resends when the attempt began, state, when it is due, other fields and values. One that is gone
 * does not come back, one that another process has delivered meanwhile stays so, and one that somebody wants to be sent again since then is
 * pending.
 */
const NOTE_ATTEMPT = `${RUNS_WHEN_FULL}
local state, resends = unpack(redis.call('HMGET', KEYS[1], 'state', 'resends'))
if not state then redis.call('ZREM', KEYS[2], ARGV[1]) end
if not state or state == 'delivered' then return state end
local isWantedAgain = (resends or '0') ~= ARGV[2]
if not isWantedAgain then state = ARGV[3] end
local fields = { 'state', state }
for at = 5, #ARGV do fields[at - 2] = ARGV[at] end
redis.call('HSET', KEYS[1], unpack(fields))
if state ~= 'pending' then redis.call('ZREM', KEYS[2], ARGV[1])
else redis.call('ZADD', KEYS[2], isWantedAgain and ${AT_ONCE} or ARGV[4], ARGV[1]) end
return state`;
/** KEYS: pending; ARGV: when they are due, ids. */
const POSTPONE = `${RUNS_WHEN_FULL}
for at = 2, #ARGV do redis.call('ZADD', KEYS[1], 'XX', 'GT', ARGV[1], ARGV[at]) end`;
/** KEYS: the delivery, pending; ARGV: id. */
const DROP = `${RUNS_WHEN_FULL}
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])`;

export class DeliveryStore {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor(redis: RedisClient, prefix: string) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** The id is that of the crossing, so it is the same for every process that finds it. */
  async addCrossing(alert: Alert, at: Date, payload: string, crossing: CrossingMark): Promise<FireOutcome> {
    const id = `dlv_${createHash('sha256').update(`${alert.id} ${crossing.field}`).digest('hex').slice(0, 32)}`;
    const { keys, args } = this.#addition(id, alert, at, payload);
    const allKeys = [...keys, crossing.alertsKey, crossing.marksKey];
    const mark = [alert.id, alert.updatedAt, crossing.field, crossing.mark];
    const outcome = await this.#redis.eval(ADD_CROSSING, allKeys.length, ...allKeys, ...mark, ...args);
    await this.#forgetOldest(alert.account, at);
    return z.enum(FIRE_OUTCOMES).parse(outcome);
  }

  /** A webhook about no crossing. */
  async addTest(alert: Alert, at: Date, payload: string): Promise<Delivery> {
    const id = `dlv_${randomBytes(16).toString('hex')}`;
    const { record, keys, args } = this.#addition(id, alert, at, payload);
    await this.#redis.eval(ADD, keys.length, ...keys, ...args);
    await this.#forgetOldest(alert.account, at);
    return { id, ...record };
  }

  async find(id: string): Promise<Delivery | undefined> {
    const fields = await this.#redis.hgetall(this.#key(id));
    return Object.keys(fields).length === 0 ? undefined : { id, ...deliveryRecord.parse(fields) };
  }

  /** Ids and times of those that are kept of an alert, in no order. */
  async listOf(account: string, alertId: string, now: Date): Promise<{ id: string; createdAt: string }[]> {
    const since = now.getTime() - KEPT_MS;
    const found = await this.#redis.zrangebyscore(this.#indexOf(account), since, '+inf', 'WITHSCORES');
    return found.flatMap((name, index) => {
      const [of, id = ''] = index % 2 === 0 ? name.split(' ') : [];
      return of === alertId ? [{ id, createdAt: new Date(Number(found[index + 1])).toISOString() }] : [];
    });
  }

  /** To be sent again, at once: the same text under the same id. @returns whether there is such a delivery */
  async sendAgain(id: string): Promise<boolean> {
    return (await this.#redis.eval(SEND_AGAIN, 2, this.#key(id), this.#pending(), id)) === 1;
  }

  /**
   * @param delivery as it was when the attempt began
   * @returns its state now, which is another one if somebody wants it to be sent again since then, or another process has delivered it;
   * undefined: it is gone
   */
  async noteAttempt(delivery: Delivery, { at, outcome, state, dueAt }: Attempt): Promise<DeliveryState | undefined> {
    const { id, attempts, resends } = delivery;
    const fields = { attempts: attempts + 1, lastAttemptAt: at.toISOString(), lastOutcome: outcome };
    const args = [id, resends, state, dueAt, ...Object.entries(fields).flat()];
    const now = await this.#redis.eval(NOTE_ATTEMPT, 2, this.#key(id), this.#pending(), ...args);
    return deliveryRecord.shape.state.nullable().parse(now) ?? undefined;
  }

  /** Pending ones that nobody has tried by then, and whether each is wanted at once, with what was planned left out. */
  async due(now: Date, limit: number): Promise<{ id: string; atOnce: boolean }[]> {
    const found = await this.#redis.zrangebyscore(
      this.#pending(),
      '-inf',
      now.getTime(),
      'WITHSCORES',
      'LIMIT',
      0,
      limit,
    );
    return found.flatMap((id, index) =>
      index % 2 === 0 ? [{ id, atOnce: Number(found[index + 1]) === AT_ONCE }] : [],
    );
  }

  /** Nobody need look at them before, unless a later time is known, or they are done meanwhile. */
  async postpone(ids: readonly string[], until: EpochMs): Promise<void> {
    await this.#redis.eval(POSTPONE, 1, this.#pending(), until, ...ids);
  }

  /** Removes a delivery that is not kept any more, or of an alert that is gone: nobody need look at it again. */
  async drop(id: string): Promise<void> {
    await this.#redis.eval(DROP, 2, this.#key(id), this.#pending(), id);
  }

  async countPending(): Promise<number> {
    return this.#redis.zcard(this.#pending());
  }

  /** @param alertId undefined: those of all alerts, also such as are gone */
  async forgetAll(account: string, alertId?: string): Promise<void> {
    const names = await this.#redis.zrange(this.#indexOf(account), 0, '-1');
    const isOne = (name: string) => alertId === undefined || name.startsWith(`${alertId} `);
    await this.#forget(account, names.filter(isOne));
  }

  #addition(id: string, { id: alertId, account, filters }: Alert, at: Date, payload: string) {
    const record: z.output<typeof deliveryRecord> = {
      ...{ account, alertId, payload, createdAt: at.toISOString() },
      ...{ state: 'pending', attempts: 0, resends: 0, seenBy: filters.workspace ? 'admin' : 'member' },
    };
    return {
      record,
      keys: [this.#key(id), this.#indexOf(account), this.#pending()],
      args: [id, `${alertId} ${id}`, at.getTime(), KEPT_MS, ...Object.entries(record).flat().map(String)],
    };
  }

  async #forgetOldest(account: string, now: Date): Promise<void> {
    const index = this.#indexOf(account);
    const tooMany = await this.#redis.zrange(index, 0, `${-MAX_DELIVERIES - 1}`);
    const tooOld = await this.#redis.zrangebyscore(index, '-inf', now.getTime() - KEPT_MS);
    await this.#forget(account, [...new Set([...tooMany, ...tooOld])]);
  }

  /** @param names in the account's index */
  async #forget(account: string, names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const ids = names.map((name) => name.split(' ')[1] ?? '');
    const gone = this.#redis.multi().del(...ids.map((id) => this.#key(id)));
    await execTransaction(gone.zrem(this.#pending(), ...ids).zrem(this.#indexOf(account), ...names));
  }

  #key(id: string): string {
    return `${this.#prefix}:alert-delivery:${id}`;
  }

  /** `<alert> <delivery>` by the time of its creation. */
  #indexOf(account: string): string {
    return `${this.#prefix}:alert-deliveries-of:${account}`;
  }

  /** The key of all deliveries that are not done, by when somebody is to look after them. */
  #pending(): string {
    return `${this.#prefix}:alert-deliveries-pending`;
  }
}
