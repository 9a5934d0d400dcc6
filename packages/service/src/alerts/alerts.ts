/**
 * Stores alerts in Redis: one hash of all alerts, an index for each account, and a mark for each threshold that has fired. A change replaces the
 * whole record. If another process changed the record in the meantime, the change is applied again to the new record.
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
    super(`the account already has ${MAX_ALERTS} alerts, the maximum; delete some`);
  }
}

/** KEYS: all alerts, account index. ARGV: ID, record, maximum number of alerts per account. */
const CREATE = `
if redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('SADD', KEYS[2], ARGV[1])
return 1`;
/** KEYS: all alerts. ARGV: ID, record as it was read, new record. */
const REPLACE = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`;

const firedMark = z.object({ value: z.string(), firedAt: z.string(), forecast: z.string().optional() });
const READ_AT_ONCE = 1_000;
/** Longer than two months, because an evaluation covers the current period and the previous period. */
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

  /** Returns the account's alerts in no particular order. */
  async listOf(account: string): Promise<Alert[]> {
    const ids = await this.#redis.smembers(this.#indexOf(account));
    if (ids.length === 0) return [];
    const texts = await this.#redis.hmget(this.#all(), ...ids);
    return ids.flatMap((id, index) => toAlert(id, texts[index]) ?? []);
  }

  async *all(): AsyncGenerator<Alert[]> {
    for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
      const [next, fields] = await this.#redis.hscan(this.#all(), cursor, 'COUNT', READ_AT_ONCE);
      const ids = fields.filter((_, index) => index % 2 === 0);
      yield ids.flatMap((id, index) => toAlert(id, fields[2 * index + 1]) ?? []);
      cursor = next;
    }
  }

  /** Changes an alert. Calls `check` with the changed alert before storing it. @returns the changed alert, or undefined if it does not exist */
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

  /** Deletes the alert with its marks and deliveries. Pending deliveries are not sent. */
  async remove({ id, account }: Pick<Alert, 'id' | 'account'>): Promise<void> {
    await execTransaction(
      this.#redis.multi().hdel(this.#all(), id).srem(this.#indexOf(account), id).del(this.#marks(id)),
    );
    await this.deliveries.deleteOf(account, id);
  }

  /** Deletes all alerts of the account with their marks and deliveries. @returns the number of deleted alerts */
  async eraseOf(account: string): Promise<number> {
    const ids = await this.#redis.smembers(this.#indexOf(account));
    for (const id of ids) await this.remove({ id, account });
    // If a process crashed during an earlier `remove`, deliveries of a deleted alert may be left.
    await this.deliveries.deleteOf(account);
    return ids.length;
  }

  /** Returns the thresholds that have fired in the period with the alert's current definition, ascending, and then those of the forecast. */
  async firedOf(alert: Alert, periodStart: EpochMs): Promise<Fired[]> {
    const thresholds = [
      ...alert.thresholds.map(({ percent }) => ({ percent, isForecast: false })),
      ...alert.forecast.map((percent) => ({ percent, isForecast: true })),
    ];
    const fields = thresholds.map(({ percent, isForecast }) => markField(alert, periodStart, percent, isForecast));
    const marks = await this.#redis.hmget(this.#marks(alert.id), ...fields);
    return thresholds.flatMap(({ percent: threshold }, index) => {
      const text = marks[index];
      return text ? [{ threshold, ...firedMark.parse(JSON.parse(text)) }] : [];
    });
  }

  /**
   * Marks a threshold as fired and adds its deliveries in one script. Does neither if the threshold already fired or the alert has changed.
   * @param body the message, unless the payload itself is sent
   */
  async fire(alert: Alert, periodStart: EpochMs, fired: Fired, payload: string, body?: string): Promise<FireOutcome> {
    const { threshold, ...mark } = fired;
    const isForecast = fired.forecast !== undefined;
    await this.#deleteMarks(alert.id, Date.parse(fired.firedAt) - MARKS_KEPT_MS);
    const type = isForecast ? 'usage.forecast_reached' : 'usage.threshold_reached';
    const crossing = {
      alertsKey: this.#all(),
      marksKey: this.#marks(alert.id),
      field: markField(alert, periodStart, threshold, isForecast),
      mark: JSON.stringify(mark),
      threshold,
    };
    return this.deliveries.addCrossing(alert, new Date(fired.firedAt), { type, payload, body }, crossing);
  }

  async #deleteMarks(id: string, before: EpochMs): Promise<void> {
    const fields = await this.#redis.hkeys(this.#marks(id));
    const expired = fields.filter((field) => Date.parse(field.split(' ')[1] ?? '') < before);
    if (expired.length > 0) await this.#redis.hdel(this.#marks(id), ...expired);
  }

  #all(): string {
    return `${this.#prefix}:alerts`;
  }

  #indexOf(account: string): string {
    return `${this.#prefix}:alerts-of:${account}`;
  }

  /** The hash with the marks of one alert. {@link markField} returns its fields. */
  #marks(id: string): string {
    return `${this.#prefix}:alert-marks:${id}`;
  }
}

function markField(alert: Alert, periodStart: EpochMs, threshold: number, isForecast: boolean): string {
  return `${definitionOf(alert)} ${formatTimestamp(periodStart)} ${threshold}${isForecast ? ' forecast' : ''}`;
}

/** Returns undefined for an invalid record, such as a record edited by hand, so that the evaluation of other alerts continues. */
function toAlert(id: string, text: string | null | undefined): Alert | undefined {
  const record = alertRecord.safeParse(parseJson(text ?? ''));
  return record.success ? { id, ...record.data } : undefined;
}
