/** Defines the names and limits of alerts. An alert fires when an account's cost or usage in a calendar period passes a threshold. */
import { formatUsage, formatUsdExact } from './amount-format.js';
import { type Unit, unitOf } from './dimensions.js';

export const ALERT_PERIODS = ['day', 'month'] as const;
export type AlertPeriod = (typeof ALERT_PERIODS)[number];

export const ALERT_MEASURES = ['cost', 'usage'] as const;
export type AlertMeasure = (typeof ALERT_MEASURES)[number];

/**
 * The body that is posted to the URL of an alert. `standard` is a signed webhook. `slack` and `teams` are messages to an incoming webhook,
 * whose URL is a secret.
 */
export const ALERT_FORMATS = ['standard', 'slack', 'teams'] as const;
export type AlertFormat = (typeof ALERT_FORMATS)[number];

/** The maximum number of e-mail addresses of an alert. */
export const MAX_RECIPIENTS = 10;

/** In percent of the alert's amount. */
export const DEFAULT_THRESHOLDS: readonly number[] = [50, 80, 100];
export const MAX_THRESHOLDS = 10;
export const MAX_THRESHOLD = 1_000;
/** The maximum number of alerts per account. */
export const MAX_ALERTS = 100;

export const DELIVERY_STATES = ['pending', 'delivered', 'failed'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

export const WEBHOOK_TYPES = ['usage.threshold_reached', 'usage.forecast_reached', 'alert.test'] as const;
export type WebhookType = (typeof WEBHOOK_TYPES)[number];

interface MeasuredAlert {
  readonly measure: AlertMeasure;
  /** An alert on usage has exactly one billing dimension in its filters. */
  readonly filters: { readonly billingDimension?: string | readonly string[] | undefined };
}

/** Returns the unit of an alert on usage. Returns undefined for an alert on cost, whose amounts are in USD. */
export function alertUnit({ measure, filters: { billingDimension } }: MeasuredAlert): Unit | undefined {
  const [dimension] = [billingDimension].flat();
  return measure === 'usage' && dimension !== undefined ? unitOf(dimension) : undefined;
}

/** Formats an amount with every digit, such as `$100.50` or `50,000 events`. The command line and the page both use this function. */
export function alertAmountText(amount: string, alert: MeasuredAlert): string {
  const unit = alertUnit(alert);
  return unit === undefined ? formatUsdExact(amount) : formatUsage(amount, unit);
}
