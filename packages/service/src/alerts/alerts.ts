/**
 * Alerts in Redis: all of them in one hash, which the evaluation reads, an index of each account, and what each has fired. Records are
 * replaced as a whole, if nobody has changed them meanwhile.
 */
import { type AlertChange, type EpochMs, formatTimestamp, MAX_ALERTS, MS_PER_DAY, parseJson } from '@meterline/catalog';
import { z } from 'zod';
import { execTransaction, REDIS_PREFIX, type RedisClient } from '../access/index.js';
import {
  type Alert,
  type AlertSettings,
  alertRecord,
  changedRecord,
  definitionOf,
  type Fired,
  newAlertId,
  newRecord,
  recordText,
} from './alert.js';
import { DeliveryStore, type FireOutcome } from './deliveries.js';

export class TooManyAlerts extends Error {
  override readonly name = 'TooManyAlerts';

  constructor() {
    super(`the account has ${MAX_ALERTS} alerts already, the most that it may have; delete some`);
  }
}

/** KEYS: all alerts, the account's; ARGV: id, record, the most that an account may have. */
const CREATE = `
if redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('SADD', KEYS[2], ARGV[1])
return 1`;
/** KEYS: all alerts; ARGV: id, record as it was read, new record. */
const REPLACE = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`;

const firedMark = z.object({ value: z.string(), firedAt: z.string() });
/** Alerts that are read at once. */
const READ_AT_ONCE = 1_000;
/** Longer than any period that is judged, and the one after it. */
const MARKS_KEPT_MS = 70 * MS_PER_DAY;

export class AlertStore {
  readonly deliveries: DeliveryStore;
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor(redis: RedisClient, prefix = REDIS_PREFIX) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.deliveries = new DeliveryStore(redis, prefix);
  }

  /** @throws TooManyAlerts */
  async create(account: string, settings: AlertSettings, now: Date): Promise<Alert> {
    const id = newAlertId();
    const record = newRecord(account, settings, now);
    const keys = [this.#all(), this.#indexOf(account)];
    const isCreated = await this.#redis.eval(CREATE, 2, ...keys, id, recordText(record), MAX_ALERTS);
    if (isCreated !== 1) throw new TooManyAlerts();
    return { id, ...record };
  }

  async find(id: string): Promise<Alert | undefined> {
    return toAlert(id, await this.#redis.hget(this.#all(), id));
  }

  /** In no order. */
  async listOf(account: string): Promise<Alert[]> {
    const ids = await this.#redis.smembers(this.#indexOf(account));
    if (ids.length === 0) return [];
    const texts = await this.#redis.hmget(this.#all(), ...ids);
    return ids.flatMap((id, index) => toAlert(id, texts[index]) ?? []);
  }

  /** The alerts of all accounts, in slices. */
  async *all(): AsyncGenerator<Alert[]> {
    for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
      const [next, fields] = await this.#redis.hscan(this.#all(), cursor, 'COUNT', READ_AT_ONCE);
      const ids = fields.filter((_, index) => index % 2 === 0);
      yield ids.flatMap((id, index) => toAlert(id, fields[2 * index + 1]) ?? []);
      cursor = next;
    }
  }

  /**
   * @param check checks the alert as it would be; what it throws, this throws
   * @returns the alert as it is now; undefined if there is none of this id
   */
  async change(id: string, change: AlertChange, now: Date, check: (alert: Alert) => void): Promise<Alert | undefined> {
    for (;;) {
      const text = await this.#redis.hget(this.#all(), id);
      const alert = toAlert(id, text);
      if (!alert || text === null) return undefined;
      const record = changedRecord(alert, change, now);
      check({ id, ...record });
      const isReplaced = await this.#redis.eval(REPLACE, 1, this.#all(), id, text, recordText(record));
      if (isReplaced === 1) return { id, ...record };
    }
  }

  /** With what it has fired and its deliveries: those that are not done are dropped. */
  async remove({ id, account }: Pick<Alert, 'id' | 'account'>): Promise<void> {
    await execTransaction(
      this.#redis.multi().hdel(this.#all(), id).srem(this.#indexOf(account), id).del(this.#marks(id)),
    );
    await this.deliveries.forgetAll(account, id);
  }

  /** @returns how many alerts there were */
  async eraseOf(account: string): Promise<number> {
    const ids = await this.#redis.smembers(this.#indexOf(account));
    for (const id of ids) await this.remove({ id, account });
    // Deliveries of an alert whose deletion was cut off.
    await this.deliveries.forgetAll(account);
    return ids.length;
  }

  /** The thresholds that have fired in the period that begins then, as the alert is defined now, ascending. */
  async firedOf(alert: Alert, periodStart: EpochMs): Promise<Fired[]> {
    const fields = alert.thresholds.map(({ percent }) => markField(alert, periodStart, percent));
    const marks = await this.#redis.hmget(this.#marks(alert.id), ...fields);
    return alert.thresholds.flatMap(({ percent: threshold }, index) => {
      const text = marks[index];
      return text ? [{ threshold, ...firedMark.parse(JSON.parse(text)) }] : [];
    });
  }

  /**
   * Marks a threshold as fired and adds its delivery, both or none, unless it has fired already, or the alert is another by now.
   * @param payload the body of the webhook, for ever
   */
  async fire(alert: Alert, periodStart: EpochMs, fired: Fired, payload: string): Promise<FireOutcome> {
    const { threshold, ...mark } = fired;
    await this.#forgetMarks(alert.id, Date.parse(fired.firedAt) - MARKS_KEPT_MS);
    return this.deliveries.addCrossing(alert, new Date(fired.firedAt), payload, {
      alertsKey: this.#all(),
      marksKey: this.#marks(alert.id),
      field: markField(alert, periodStart, threshold),
      mark: JSON.stringify(mark),
    });
  }

  async #forgetMarks(id: string, before: EpochMs): Promise<void> {
    const fields = await this.#redis.hkeys(this.#marks(id));
    const old = fields.filter((field) => Date.parse(field.split(' ')[1] ?? '') < before);
    if (old.length > 0) await this.#redis.hdel(this.#marks(id), ...old);
  }

  #all(): string {
    return `${this.#prefix}:alerts`;
  }

  #indexOf(account: string): string {
    return `${this.#prefix}:alerts-of:${account}`;
  }

  /** What the alert has fired: fields as {@link markField} has them. */
  #marks(id: string): string {
    return `${this.#prefix}:alert-marks:${id}`;
  }
}

function markField(alert: Alert, periodStart: EpochMs, threshold: number): string {
  return `${definitionOf(alert)} ${formatTimestamp(periodStart)} ${threshold}`;
}

/** None where the record is not what `create` writes, such as one that was edited by hand: it must not hold up the others. */
function toAlert(id: string, text: string | null | undefined): Alert | undefined {
  const record = alertRecord.safeParse(parseJson(text ?? ''));
  return record.success ? { id, ...record.data } : undefined;
}
