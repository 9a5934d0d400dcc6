/** Defines the stored form of an alert, the settings that decide when it fires, its periods, and the body of its webhooks. */
import { createHash, randomBytes } from 'node:crypto';
import {
  ALERT_FORMATS,
  ALERT_MEASURES,
  ALERT_PERIODS,
  type AlertChange,
  type AlertFilters,
  type AlertFormat,
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

/** A replaced secret still signs webhooks for this long, so that receivers have time to switch to the new secret. */
const ROTATION_MS = MS_PER_DAY;
/** More than one, because rotating a secret twice in a day must not invalidate the secret that receivers still use. */
const MAX_PREVIOUS_SECRETS = 9;
const SECRET_BYTES = 32;

const texts = z.array(z.string()).optional();

export const alertRecord = z.object({
  account: z.string(),
  name: z.string(),
  period: z.enum(ALERT_PERIODS),
  measure: z.enum(ALERT_MEASURES),
  /** A decimal in its shortest form. The unit is USD, or the unit of the billing dimension. */
  amount: z.string(),
  /** In ascending order. Periods that ended before a threshold was set (`since`, RFC 3339) do not count, so a new alert ignores the past. */
  thresholds: z.array(z.object({ percent: z.int(), since: z.string() })),
  /** Thresholds of the forecast. The defaults of this record apply to alerts that an earlier version wrote. */
  forecast: z.array(z.int()).default([]),
  /** The filters have the same names as in the API. Each list is sorted and has no duplicates. */
  filters: z.object({
    workspace: texts,
    resourceType: texts,
    resourceName: texts,
    resourceUuid: texts,
    billingDimension: texts,
  }),
  /** An alert has either a format and a URL, or addresses that get an e-mail. This never changes. */
  format: z.enum(ALERT_FORMATS).default('standard'),
  url: z.string().optional(),
  to: z.array(z.string()).optional(),
  /** The prefix `whsec_` and 32 bytes in base64. Only signed webhooks have one. Source: Standard Webhooks. */
  secret: z.string().optional(),
  previousSecrets: z.array(z.object({ secret: z.string(), until: z.string() })).optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
type AlertRecord = z.output<typeof alertRecord>;

export interface Alert extends AlertRecord {
  readonly id: string;
}

export type AlertSettings = Pick<AlertRecord, 'name' | 'period' | 'measure' | 'amount'> & {
  readonly thresholds: readonly number[];
  readonly forecast?: readonly number[];
  readonly filters: AlertFilters;
  readonly format?: AlertFormat | undefined;
  readonly url?: string | undefined;
  readonly to?: readonly string[] | undefined;
};

export interface Fired {
  readonly threshold: number;
  /** The decimal cost or usage of the period at the time `firedAt`. */
  readonly value: string;
  readonly firedAt: string;
  /** The forecast of the period, if the forecast reached the threshold. */
  readonly forecast?: string | undefined;
}

export function newAlertId(): string {
  return `alr_${randomBytes(12).toString('hex')}`;
}

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}

/** Whether the alert posts signed webhooks, and so has a secret. */
export function isSigned({ format = 'standard', url }: Pick<AlertSettings, 'format' | 'url'>): boolean {
  return url !== undefined && format === 'standard';
}

export function newRecord(account: string, { thresholds, ...settings }: AlertSettings, now: Date): AlertRecord {
  const at = now.toISOString();
  return alertRecord.parse({
    account,
    ...settings,
    filters: canonicalFilters(settings.filters),
    thresholds: thresholds.map((percent) => ({ percent, since: at })),
    ...(isSigned(settings) && { secret: newSecret() }),
    createdAt: at,
    updatedAt: at,
  });
}

/** Applies a change. Undefined members stay unchanged. A new threshold counts only from now on, or all do if the definition has changed. */
export function changedRecord(alert: Alert, { rotateSecret, ...change }: AlertChange, now: Date): AlertRecord {
  const { id: _, ...record } = alert;
  const at = now.toISOString();
  const defined = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
  const { thresholds: _old, ...settings } = { ...settingsOf(alert), ...defined };
  // `updatedAt` is the version of the record, so it must increase even if the clock is behind.
  const updatedAt = new Date(Math.max(now.getTime(), Date.parse(alert.updatedAt) + 1)).toISOString();
  const changed = { ...record, ...settings, filters: canonicalFilters(settings.filters), updatedAt };
  const isSame = definitionOf(changed) === definitionOf(alert);
  const since = new Map(isSame ? alert.thresholds.map((threshold) => [threshold.percent, threshold.since]) : []);
  const percents = change.thresholds ?? alert.thresholds.map(({ percent }) => percent);
  const until = new Date(now.getTime() + ROTATION_MS).toISOString();
  const previous = [...(alert.secret ? [{ secret: alert.secret, until }] : []), ...validPrevious(alert, now)];
  return alertRecord.parse({
    ...changed,
    thresholds: percents.map((percent) => ({ percent, since: since.get(percent) ?? at })),
    ...(rotateSecret && { secret: newSecret(), previousSecrets: previous.slice(0, MAX_PREVIOUS_SECRETS) }),
  });
}

export function settingsOf({ name, period, measure, amount, forecast, format, url, to, ...alert }: Alert) {
  const thresholds = alert.thresholds.map(({ percent }) => percent);
  const filters = alert.filters as AlertFilters;
  const target = to ? { to } : { format, url };
  return { name, period, measure, amount, thresholds, forecast, filters, ...target };
}

function canonicalFilters(filters: AlertFilters): AlertRecord['filters'] {
  const lists = Object.entries(filters).map(([name, values]) => [name, [...new Set<string>(values)].sort()]);
  return Object.fromEntries(lists);
}

export function recordText(record: AlertRecord): string {
  return JSON.stringify(alertRecord.parse(record));
}

/** Returns a hash of the settings that decide when the alert fires. Marks of fired thresholds contain it, so a changed alert can fire again. */
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

/** Returns the secrets that sign webhooks, with the current secret first. */
export function validSecrets(alert: Alert, now: Date): string[] {
  return [...(alert.secret ? [alert.secret] : []), ...validPrevious(alert, now).map(({ secret }) => secret)];
}

function validPrevious({ previousSecrets = [] }: AlertRecord, now: Date) {
  return previousSecrets.filter(({ until }) => Date.parse(until) > now.getTime());
}

export function periodAt(period: AlertPeriod, instant: EpochMs): Window {
  const startTime = bucketStart(instant, period === 'day' ? 'daily' : 'monthly');
  return { startTime, endTime: period === 'day' ? startTime + MS_PER_DAY : plusMonths(startTime, 1) };
}

/**
 * Returns the payload of a delivery: the body of a webhook, and the facts of any other message. Without `fired`, the delivery is a test.
 * The JSON is assembled by hand, because JSON.stringify would round amounts to doubles. Source: Standard Webhooks, "Payload structure".
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
    `"amount":${amount}`,
    ...(fired ? [`"threshold":${fired.threshold}`, `"value":${fired.value}`] : []),
    ...(fired?.forecast === undefined ? [] : [`"forecast":${fired.forecast}`]),
  ];
  return `{"type":"${type}","timestamp":"${formatTimestamp(at)}","data":{${members.join(',')}}}`;
}
