/** Words of alerts. An alert says when an account has used, or spent, so much in a calendar period. */
export const ALERT_PERIODS = ['day', 'month'] as const;
export type AlertPeriod = (typeof ALERT_PERIODS)[number];

export const ALERT_MEASURES = ['cost', 'usage'] as const;
export type AlertMeasure = (typeof ALERT_MEASURES)[number];

/** Percents of the amount. */
export const DEFAULT_THRESHOLDS: readonly number[] = [50, 80, 100];
export const MAX_THRESHOLDS = 10;
export const MAX_THRESHOLD = 1_000;
/** Of an account. */
export const MAX_ALERTS = 100;

export const DELIVERY_STATES = ['pending', 'delivered', 'failed'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** The member `type` of a webhook. */
export const WEBHOOK_TYPES = ['usage.threshold_reached', 'alert.test'] as const;
export type WebhookType = (typeof WEBHOOK_TYPES)[number];
