/** The API's alerts and their deliveries as `readExactJson` reads them, and the webhook itself. As in responses.ts. */
import * as z from 'zod/mini';
import { ALERT_MEASURES, ALERT_PERIODS, DELIVERY_STATES, WEBHOOK_TYPES } from '../alert.js';
import { BILLING_DIMENSIONS, RESOURCE_TYPES } from '../dimensions.js';
import { amount, decimalString, described, instant, listPage, wholeNumber } from './responses.js';

const percent = () => wholeNumber({ minimum: 1, description: 'Percent of the amount.' });
const value = () => amount('What the period had when the threshold was found crossed, exact.');

const firedThresholdSchema = z.object({ threshold: percent(), value: value(), firedAt: instant() });

export const alertSchema = z.object({
  id: described(z.string(), 'The {alertId} of paths.'),
  name: z.string(),
  period: described(z.enum(ALERT_PERIODS), 'A calendar day or month in UTC.'),
  measure: described(z.enum(ALERT_MEASURES), '`usage` is that of the one billing dimension among the filters.'),
  amount: decimalString('A decimal: USD, or units of the billing dimension.'),
  thresholds: described(z.array(percent()), 'Percents of the amount, ascending.'),
  filters: described(
    z.object({
      workspace: z.optional(z.array(z.string())),
      resourceType: z.optional(z.array(z.enum(RESOURCE_TYPES))),
      resourceName: z.optional(z.array(z.string())),
      resourceUuid: z.optional(z.array(z.string())),
      billingDimension: z.optional(z.array(z.enum(BILLING_DIMENSIONS))),
    }),
    'What usage must have to be counted, as the filters of the metrics.',
  ),
  url: described(z.string(), 'The origin alone for callers who may not change the alert: the rest may be a secret.'),
  createdAt: instant(),
  updatedAt: instant(),
  fired: described(z.array(firedThresholdSchema), 'The thresholds that were crossed in the current period.'),
});
/** An alert of an account. */
export type AlertResponse = z.output<typeof alertSchema>;

/** The list before lists were paginated. */
export const alertArraySchema = z.array(alertSchema);
/** The list since then. */
export const alertPageSchema = listPage(alertSchema);

export const alertWithSecretSchema = z.extend(alertSchema, {
  secret: described(
    z.optional(z.string()),
    'Signs webhooks (Standard Webhooks). Shown when it is made and never again.',
  ),
});
/** A new alert, or one that was changed: with its secret if it has a new one. */
export type AlertWithSecretResponse = z.output<typeof alertWithSecretSchema>;

export const webhookSchema = z.object({
  type: z.enum(WEBHOOK_TYPES),
  timestamp: instant('When the threshold was found crossed.'),
  data: z.object({
    alertId: z.string(),
    accountId: z.string(),
    name: z.string(),
    period: z.object({ startTime: instant(), endTime: instant() }),
    measure: z.enum(ALERT_MEASURES),
    amount: amount('Of the alert.'),
    threshold: z.optional(percent()),
    value: z.optional(value()),
  }),
});
/** The body of a webhook. A test has neither threshold nor value. */
export type WebhookBody = z.output<typeof webhookSchema>;

export const deliverySchema = z.object({
  id: described(z.string(), 'The {deliveryId} of paths, and the header `webhook-id` of every attempt.'),
  createdAt: instant(),
  state: described(
    z.enum(DELIVERY_STATES),
    '`pending`: there are more attempts. `failed`: there are none, until it is sent again.',
  ),
  attempts: wholeNumber({ minimum: 0, description: 'How many there were.' }),
  lastAttemptAt: z.optional(instant()),
  lastOutcome: described(z.optional(z.string()), 'The HTTP status of the last attempt, or why it had none.'),
  payload: webhookSchema,
});
/** A webhook, and what became of it. */
export type DeliveryResponse = z.output<typeof deliverySchema>;

/** The list before lists were paginated. */
export const deliveryArraySchema = z.array(deliverySchema);
/** The list since then. */
export const deliveryPageSchema = listPage(deliverySchema);
