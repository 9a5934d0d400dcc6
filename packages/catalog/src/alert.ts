/** Defines the vocabulary of alerts. An alert fires when an account's cost or usage in a calendar period passes a threshold. */
import { formatUsage, formatUsdExact } from './amount-format.js';
import { BILLING_DIMENSIONS, DIMENSIONS, type Unit } from './dimensions.js';

export const ALERT_PERIODS = ['day', 'month'] as const;
export type AlertPeriod = (typeof ALERT_PERIODS)[number];

export const ALERT_MEASURES = ['cost', 'usage'] as const;
export type AlertMeasure = (typeof ALERT_MEASURES)[number];

/** In percent of the alert's amount. */
export const DEFAULT_THRESHOLDS: readonly number[] = [50, 80, 100];
export const MAX_THRESHOLDS = 10;
export const MAX_THRESHOLD = 1_000;
/** Per account. */
export const MAX_ALERTS = 100;

export const DELIVERY_STATES = ['pending', 'delivered', 'failed'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** The member `type` of a webhook. */
export const WEBHOOK_TYPES = ['usage.threshold_reached', 'alert.test'] as const;
export type WebhookType = (typeof WEBHOOK_TYPES)[number];

/** The fields of an alert that determine its unit. */
interface MeasuredAlert {
  readonly measure: AlertMeasure;
  /** The filters of the alert. An alert on usage has exactly one billing dimension. */
  readonly filters: { readonly billingDimension?: string | readonly string[] | undefined };
}

/** Returns the unit that an alert on usage counts in, or undefined for an alert on cost, which counts USD. */
export function alertUnit({ measure, filters: { billingDimension } }: MeasuredAlert): Unit | undefined {
  const dimension = BILLING_DIMENSIONS.find((each) => [billingDimension].flat().includes(each));
  return measure === 'usage' && dimension ? DIMENSIONS[dimension].unit : undefined;
}

/** Formats an amount with every digit, the same way on the command line and on the page: `$100.50`, `50,000 events`. */
export function alertAmountText(amount: string, alert: MeasuredAlert): string {
  const unit = alertUnit(alert);
  return unit === undefined ? formatUsdExact(amount) : formatUsage(amount, unit);
}
