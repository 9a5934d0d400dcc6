/**
 * Stores deliveries in Redis. A delivery is one message of an alert: a webhook, a message to Slack or Teams, or an e-mail to one recipient. When
 * a threshold fires, one script marks the threshold, writes the deliveries, and adds them to the outbox. The outbox is a sorted set of pending
 * deliveries, ordered by due time.
 *
 * A process claims due deliveries for a limited time, the lease: it moves their due time to the end of the lease. If the process dies, another
 * process claims the deliveries when the lease has expired.
 *
 * Deliveries are kept for 30 days. An account keeps its newest 1,000 deliveries. It also keeps older ones that are pending, up to 10,000 in all.
 */
import { createHash, randomBytes } from 'node:crypto';
import { DELIVERY_STATES, type DeliveryState, type EpochMs, MS_PER_DAY, WEBHOOK_TYPES } from '@meterline/catalog';
import { z } from 'zod';
import { execTransaction, type RedisClient } from '../access/index.js';
import type { Alert } from './alert.js';

const ID_DIGITS = 32;
const KEPT_MS = 30 * MS_PER_DAY;
const MAX_DELIVERIES = 1_000;
/** While a mail server is down, each fired threshold leaves a pending delivery for each recipient. Without a limit, they could fill Redis. */
const MAX_PENDING = 10_000;
/** A mark records that a threshold has fired, for 70 days. A changed alert can fire again, so without a limit, its marks could fill Redis. */
export const MAX_MARKS = 5_000;
/**
 * The due time of a test or redelivered webhook: 1970, so that it is due even if clocks differ. It never equals the end of a lease. A fired
 * threshold is also due in 1970: its due time is the threshold in percent, so that lower thresholds are claimed first.
 */
const DUE_NOW = 0;

/** The defaults apply to records that an earlier version wrote. */
const deliveryRecord = z.object({
  account: z.string(),
  alertId: z.string(),
  type: z.enum(WEBHOOK_TYPES).default('usage.threshold_reached'),
  /** The body of a webhook, with the same bytes in every attempt. For other messages, the facts that they contain. */
  payload: z.string(),
  /** The message, if it is not the payload: the body for Slack or Teams, or the subject and the two parts of an e-mail as JSON. */
  body: z.string().optional(),
  /** The address of an e-mail. Each recipient has a delivery, so that a rejected recipient is retried alone. */
  to: z.string().optional(),
  createdAt: z.string(),
  state: z.enum(DELIVERY_STATES),
  attempts: z.coerce.number(),
  /** The number of failed attempts since the delivery was created or last redelivered. */
  failures: z.coerce.number().default(0),
  lastAttemptAt: z.string().optional(),
  lastOutcome: z.string().optional(),
  /** `admin` if the alert had a workspace filter when it fired. Members never see such a delivery, even if the filter is removed later. */
  seenBy: z.enum(['admin', 'member']).default('admin'),
});

export interface Delivery extends z.output<typeof deliveryRecord> {
  /** Sent as `webhook-id`, or in the Message-ID, of every attempt, so that receivers can drop duplicates. */
  readonly id: string;
}

interface Message extends Pick<Delivery, 'type' | 'payload'> {
  readonly body: string | undefined;
}

/** `already`: the threshold fired before. `changed`: the alert was changed or deleted. `full`: the alert has {@link MAX_MARKS} marks. */
const FIRE_OUTCOMES = ['fired', 'already', 'changed', 'full'] as const;
export type FireOutcome = (typeof FIRE_OUTCOMES)[number];

export interface CrossingMark {
  readonly alertsKey: string;
  readonly marksKey: string;
  readonly field: string;
  readonly mark: string;
  readonly threshold: number;
}

export interface Attempt {
  readonly at: Date;
  /** An HTTP or SMTP status, or the reason why there was no response. */
  readonly outcome: string;
  /** The new state. Ignored if the delivery was claimed again or redelivered during the attempt. */
  readonly state: DeliveryState;
  /** The end of the attempt's lease, as passed to `claim`. */
  readonly leaseUntil: EpochMs;
  readonly dueAt: EpochMs;
}

/** Adds deliveries. KEYS: account index, outbox, deliveries. ARGV: creation time, retention in ms, due time; ID, index entry and fields of each. */
const ADD = `
for at = 3, #KEYS do
  local id, entry, fields = unpack(ARGV, 3 * at - 5, 3 * at - 3)
  redis.call('HSET', KEYS[at], unpack(cjson.decode(fields)))
  redis.call('PEXPIRE', KEYS[at], ARGV[2])
  redis.call('ZADD', KEYS[1], ARGV[1], entry)
  redis.call('ZADD', KEYS[2], ARGV[3], id)
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])`;
/**
 * Marks a threshold and adds its deliveries. KEYS: all alerts, marks of the alert, then the KEYS of ADD. ARGV: alert ID, updatedAt, mark field,
 * mark, then the ARGV of ADD. `updatedAt` increases with every change, so the script need not compare the whole record, to which a newer release
 * may have added members.
 */
const ADD_CROSSING = `
local record = redis.call('HGET', KEYS[1], ARGV[1])
if not record or cjson.decode(record).updatedAt ~= ARGV[2] then return 'changed' end
if redis.call('HEXISTS', KEYS[2], ARGV[3]) == 1 then return 'already' end
if redis.call('HLEN', KEYS[2]) >= ${MAX_MARKS} then return 'full' end
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
for _ = 1, 2 do table.remove(KEYS, 1) end
for _ = 1, 4 do table.remove(ARGV, 1) end
${ADD}
return 'fired'`;
/** Makes a delivery due now. KEYS: delivery, outbox. ARGV: ID. */
const REDELIVER = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'state', 'pending', 'failures', 0)
redis.call('ZADD', KEYS[2], ${DUE_NOW}, ARGV[1])
return 1`;
/** Lets a script run while Redis is out of memory. Otherwise, sent webhooks could not be recorded, and would be sent again and again. */
const RUNS_WHEN_FULL = '#!lua flags=allow-oom';
/** Claims due deliveries. KEYS: outbox. ARGV: now, end of the lease, maximum number of deliveries. */
const CLAIM = `${RUNS_WHEN_FULL}
local ids = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[1], ARGV[2], id) end
return ids`;
/** Sets another due time, unless the delivery was redelivered or claimed again. KEYS: outbox. ARGV: ID, end of the lease, due time. */
const POSTPONE = `${RUNS_WHEN_FULL}
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1])) == tonumber(ARGV[2]) then redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1]) end`;
/**
 * Records an attempt. KEYS: delivery, outbox. ARGV: ID, end of the attempt's lease, new state, due time, failures, then other fields and values.
 *
 * Does not restore a deleted delivery, and does not change one that another process has finished. If the due time is not the end of this lease,
 * the delivery was redelivered or claimed again during the attempt. It then stays pending, and its next attempt decides. If it was only claimed
 * again, a successful attempt finishes it: only a redelivery, which is due now, needs another attempt.
 */
const NOTE_ATTEMPT = `${RUNS_WHEN_FULL}
local state = redis.call('HGET', KEYS[1], 'state')
if not state then redis.call('ZREM', KEYS[2], ARGV[1]) end
if state ~= 'pending' then return state end
local fields = {}
for at = 6, #ARGV do fields[at - 5] = ARGV[at] end
redis.call('HSET', KEYS[1], unpack(fields))
local due = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]))
if due ~= tonumber(ARGV[2]) and (ARGV[3] ~= 'delivered' or due == ${DUE_NOW}) then return state end
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'failures', ARGV[5])
if ARGV[3] == 'pending' then redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
else redis.call('ZREM', KEYS[2], ARGV[1]) end
return ARGV[3]`;

export class DeliveryStore {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor(redis: RedisClient, prefix: string) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** Adds the deliveries of a fired threshold. Their IDs depend only on what fired, so every process that detects it uses the same IDs. */
  async addCrossing(alert: Alert, at: Date, message: Message, crossing: CrossingMark): Promise<FireOutcome> {
    const idOf = (to?: string) => {
      const text = `${alert.id} ${crossing.field}${to === undefined ? '' : ` ${to}`}`;
      return createHash('sha256').update(text).digest('hex').slice(0, ID_DIGITS);
    };
    const { keys, args } = this.#addition(idOf, alert, at, { ...message, dueAt: crossing.threshold });
    const allKeys = [crossing.alertsKey, crossing.marksKey, ...keys];
    const mark = [alert.id, alert.updatedAt, crossing.field, crossing.mark];
    const outcome = await this.#redis.eval(ADD_CROSSING, allKeys.length, ...allKeys, ...mark, ...args);
    await this.#deleteOldest(alert.account, at);
    return z.enum(FIRE_OUTCOMES).parse(outcome);
  }

  /** @returns the delivery, or that of the first recipient */
  async addTest(alert: Alert, at: Date, payload: string, body?: string): Promise<Delivery> {
    const idOf = () => randomBytes(ID_DIGITS / 2).toString('hex');
    const { first, keys, args } = this.#addition(idOf, alert, at, {
      type: 'alert.test',
      payload,
      body,
      dueAt: DUE_NOW,
    });
    await this.#redis.eval(ADD, keys.length, ...keys, ...args);
    await this.#deleteOldest(alert.account, at);
    return first;
  }

  async find(id: string): Promise<Delivery | undefined> {
    const fields = await this.#redis.hgetall(this.#key(id));
    return Object.keys(fields).length === 0 ? undefined : { id, ...deliveryRecord.parse(fields) };
  }

  /** Returns the IDs and creation times of an alert's deliveries, in no particular order. */
  async listOf(account: string, alertId: string, now: Date): Promise<{ id: string; createdAt: string }[]> {
    const since = now.getTime() - KEPT_MS;
    const entries = await this.#redis.zrangebyscore(this.#indexOf(account), since, '+inf', 'WITHSCORES');
    return entries.flatMap((entry, index) => {
      const [ownerId, id = ''] = index % 2 === 0 ? entry.split(' ') : [];
      return ownerId === alertId ? [{ id, createdAt: new Date(Number(entries[index + 1])).toISOString() }] : [];
    });
  }

  /** Makes the delivery due now, with the same body and ID, and the full number of attempts. @returns false if it does not exist */
  async redeliver(id: string): Promise<boolean> {
    return (await this.#redis.eval(REDELIVER, 2, this.#key(id), this.#outbox(), id)) === 1;
  }

  /** Claims due deliveries until `leaseUntil`. Other processes do not get them until then. @returns their IDs, the earliest due time first */
  async claim(now: EpochMs, leaseUntil: EpochMs, limit: number): Promise<string[]> {
    const ids = await this.#redis.eval(CLAIM, 1, this.#outbox(), now, leaseUntil, limit);
    return z.array(z.string()).parse(ids);
  }

  /** Changes the end of a lease to `dueAt` without recording an attempt. */
  async postpone(id: string, leaseUntil: EpochMs, dueAt: EpochMs): Promise<void> {
    await this.#redis.eval(POSTPONE, 1, this.#outbox(), id, leaseUntil, dueAt);
  }

  /** Records an attempt. `delivery` must have been read before the attempt. @returns the new state, or undefined if the delivery was deleted */
  async noteAttempt(delivery: Delivery, attempt: Attempt): Promise<DeliveryState | undefined> {
    const { id, attempts, failures } = delivery;
    const { at, outcome, state, leaseUntil, dueAt } = attempt;
    const fields = { attempts: attempts + 1, lastAttemptAt: at.toISOString(), lastOutcome: outcome };
    const args = [id, leaseUntil, state, dueAt, failures + 1, ...Object.entries(fields).flat()];
    const newState = await this.#redis.eval(NOTE_ATTEMPT, 2, this.#key(id), this.#outbox(), ...args);
    return deliveryRecord.shape.state.nullable().parse(newState) ?? undefined;
  }

  /** Removes a delivery that has expired or whose alert was deleted. */
  async drop(id: string): Promise<void> {
    await execTransaction(this.#redis.multi().del(this.#key(id)).zrem(this.#outbox(), id));
  }

  async countPending(): Promise<number> {
    return this.#redis.zcard(this.#outbox());
  }

  /** @param alertId default: all alerts of the account, including deleted alerts */
  async deleteOf(account: string, alertId?: string): Promise<void> {
    const entries = await this.#redis.zrange(this.#indexOf(account), 0, '-1');
    const isSelected = (entry: string) => alertId === undefined || entry.startsWith(`${alertId} `);
    await this.#delete(account, entries.filter(isSelected));
  }

  #addition(idOf: (to?: string) => string, alert: Alert, at: Date, message: Message & { readonly dueAt: EpochMs }) {
    const { id: alertId, account, filters, to } = alert;
    const record = {
      account,
      alertId,
      type: message.type,
      payload: message.payload,
      createdAt: at.toISOString(),
      state: 'pending',
      attempts: 0,
      failures: 0,
      seenBy: filters.workspace ? 'admin' : 'member',
      ...(message.body !== undefined && { body: message.body }),
    } as const;
    const deliveryOf = (recipient?: string): Delivery => {
      return { id: `dlv_${idOf(recipient)}`, ...record, ...(recipient !== undefined && { to: recipient }) };
    };
    const [first = deliveryOf(), ...others] = to?.map(deliveryOf) ?? [];
    const deliveries = [first, ...others];
    const argsOf = ({ id, ...fields }: Delivery) => {
      return [id, `${alertId} ${id}`, JSON.stringify(Object.entries(fields).flat().map(String))];
    };
    return {
      first,
      keys: [this.#indexOf(account), this.#outbox(), ...deliveries.map(({ id }) => this.#key(id))],
      args: [at.getTime(), KEPT_MS, message.dueAt, ...deliveries.flatMap(argsOf)],
    };
  }

  async #deleteOldest(account: string, now: Date): Promise<void> {
    const index = this.#indexOf(account);
    const aboveLimit = await this.#redis.zrange(index, 0, `${-MAX_DELIVERIES - 1}`);
    const ids = aboveLimit.map((entry) => entry.split(' ')[1] ?? '');
    const due = ids.length === 0 ? [] : await this.#redis.zmscore(this.#outbox(), ...ids);
    const left = aboveLimit.length + MAX_DELIVERIES - MAX_PENDING;
    const surplus = aboveLimit.filter((_, position) => due[position] === null || position < left);
    const expired = await this.#redis.zrangebyscore(index, '-inf', now.getTime() - KEPT_MS);
    await this.#delete(account, [...new Set([...surplus, ...expired])]);
  }

  async #delete(account: string, entries: readonly string[]): Promise<void> {
    if (entries.length === 0) return;
    const ids = entries.map((entry) => entry.split(' ')[1] ?? '');
    const transaction = this.#redis.multi().del(...ids.map((id) => this.#key(id)));
    await execTransaction(transaction.zrem(this.#outbox(), ...ids).zrem(this.#indexOf(account), ...entries));
  }

  #key(id: string): string {
    return `${this.#prefix}:alert-delivery:${id}`;
  }

  /** A sorted set of `<alert ID> <delivery ID>`, ordered by creation time. */
  #indexOf(account: string): string {
    return `${this.#prefix}:alert-deliveries-of:${account}`;
  }

  /** A sorted set with the IDs of the pending deliveries of all accounts, ordered by due time. */
  #outbox(): string {
    return `${this.#prefix}:alert-deliveries-pending`;
  }
}
