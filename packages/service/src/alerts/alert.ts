/** An alert as Redis keeps it, its definition, and its periods. */
import { createHash, randomBytes } from 'node:crypto';
import {
  ALERT_MEASURES,
  ALERT_PERIODS,
  type AlertChange,
  type AlertFilters,
  type AlertPeriod,
  bucketStart,
  type EpochMs,
  formatTimestamp,
  MS_PER_DAY,
  plusMonths,
  type WebhookType,
  type Window,
} from '@meterline/catalog';
import { z } from 'zod';

/** A secret that was replaced signs as well for so long. */
const ROTATION_MS = MS_PER_DAY;
/** Who did not get the new one makes another, and receivers still know an older one. */
const MAX_PREVIOUS_SECRETS = 9;
const SECRET_BYTES = 32;

const texts = z.array(z.string()).optional();

export const alertRecord = z.object({
  account: z.string(),
  name: z.string(),
  period: z.enum(ALERT_PERIODS),
  measure: z.enum(ALERT_MEASURES),
  /** A decimal in its shortest form. */
  amount: z.string(),
  /** Ascending. Periods that had ended before `since` (RFC 3339) are not judged: an alert is not about the past. */
  thresholds: z.array(z.object({ percent: z.int(), since: z.string() })),
  /** By the API's names; each list ascending and without repetition. */
  filters: z.object({
    workspace: texts,
    resourceType: texts,
    resourceName: texts,
    resourceUuid: texts,
    billingDimension: texts,
  }),
  url: z.string(),
  /** `whsec_` and base64. Source: Standard Webhooks. */
  secret: z.string(),
  previousSecrets: z.array(z.object({ secret: z.string(), until: z.string() })).optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
type AlertRecord = z.output<typeof alertRecord>;

export interface Alert extends AlertRecord {
  readonly id: string;
}

/** What a caller may set. */
export type AlertSettings = Pick<AlertRecord, 'name' | 'period' | 'measure' | 'amount' | 'url'> & {
  readonly thresholds: readonly number[];
  readonly filters: AlertFilters;
};

/** A threshold that was crossed. */
export interface Fired {
  readonly threshold: number;
  /** A decimal: what the period had when that was found. */
  readonly value: string;
  readonly firedAt: string;
}

export function newAlertId(): string {
  return `alr_${randomBytes(12).toString('hex')}`;
}

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}

export function newRecord(account: string, { thresholds, ...settings }: AlertSettings, now: Date): AlertRecord {
  const at = now.toISOString();
  return {
    account,
    ...settings,
    filters: canonicalFilters(settings.filters),
    thresholds: thresholds.map((percent) => ({ percent, since: at })),
    secret: newSecret(),
    createdAt: at,
    updatedAt: at,
  };
}

/** Members that are undefined stay as they are. A threshold that is new, or means something else now, is judged from now on. */
export function changedRecord(alert: Alert, { rotateSecret, ...change }: AlertChange, now: Date): AlertRecord {
  const { id: _, ...record } = alert;
  const at = now.toISOString();
  const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
  const { thresholds: _old, ...settings } = { ...settingsOf(alert), ...given };
  // Always rises, even if the clock is behind: updatedAt is the version of the record.
  const updatedAt = new Date(Math.max(now.getTime(), Date.parse(alert.updatedAt) + 1)).toISOString();
  const changed = { ...record, ...settings, filters: canonicalFilters(settings.filters), updatedAt };
  const isSame = definitionOf(changed) === definitionOf(alert);
  const known = new Map(isSame ? alert.thresholds.map(({ percent, since }) => [percent, since]) : []);
  const percents = change.thresholds ?? alert.thresholds.map(({ percent }) => percent);
  const until = new Date(now.getTime() + ROTATION_MS).toISOString();
  const previous = [{ secret: alert.secret, until }, ...validPrevious(alert, now)];
  return {
    ...changed,
    thresholds: percents.map((percent) => ({ percent, since: known.get(percent) ?? at })),
    ...(rotateSecret && { secret: newSecret(), previousSecrets: previous.slice(0, MAX_PREVIOUS_SECRETS) }),
  };
}

export function settingsOf({ name, period, measure, amount, thresholds, filters, url }: Alert): AlertSettings {
  const percents = thresholds.map(({ percent }) => percent);
  return { name, period, measure, amount, thresholds: percents, filters: filters as AlertFilters, url };
}

function canonicalFilters(filters: AlertFilters): AlertRecord['filters'] {
  const lists = Object.entries(filters).map(([name, values]) => [name, [...new Set<string>(values)].sort()]);
  return Object.fromEntries(lists);
}

/** What Redis keeps of it. */
export function recordText(record: AlertRecord): string {
  return JSON.stringify(alertRecord.parse(record));
}

/** What a threshold is a share of. A crossing of one definition is none of another: a digest, the same for what is the same. */
export function definitionOf({
  period,
  measure,
  amount,
  filters,
}: Pick<AlertRecord, 'period' | 'measure' | 'amount' | 'filters'>): string {
  const lists = Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify([period, measure, amount, lists]);
  return createHash('sha256').update(text).digest('hex').slice(0, 24);
}

/** The secrets that sign, the present one first. */
export function validSecrets(alert: Alert, now: Date): string[] {
  return [alert.secret, ...validPrevious(alert, now).map(({ secret }) => secret)];
}

function validPrevious({ previousSecrets = [] }: AlertRecord, now: Date) {
  return previousSecrets.filter(({ until }) => Date.parse(until) > now.getTime());
}

/** The calendar day or month, in UTC, that an instant lies in. */
export function periodAt(period: AlertPeriod, instant: EpochMs): Window {
  const startTime = bucketStart(instant, period === 'day' ? 'daily' : 'monthly');
  return { startTime, endTime: period === 'day' ? startTime + MS_PER_DAY : plusMonths(startTime, 1) };
}

/**
 * The body of a webhook: what was found, with amounts in all their digits. Source: Standard Webhooks, "Payload structure".
 * @param fired left out of a test
 */
export function webhookPayload(alert: Alert, type: WebhookType, period: Window, at: EpochMs, fired?: Fired): string {
  const { id: alertId, account: accountId, name, measure, amount } = alert;
  const { startTime, endTime } = period;
  const members = [
    `"alertId":${JSON.stringify(alertId)}`,
    `"accountId":${JSON.stringify(accountId)}`,
    `"name":${JSON.stringify(name)}`,
    `"period":{"startTime":"${formatTimestamp(startTime)}","endTime":"${formatTimestamp(endTime)}"}`,
    `"measure":"${measure}"`,
    // A decimal in its shortest form is a JSON number.
    `"amount":${amount}`,
    ...(fired ? [`"threshold":${fired.threshold}`, `"value":${fired.value}`] : []),
  ];
  return `{"type":"${type}","timestamp":"${formatTimestamp(at)}","data":{${members.join(',')}}}`;
}
