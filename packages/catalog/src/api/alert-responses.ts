/** Defines the API's responses about alerts and deliveries, and the body of a webhook. The conventions are those of responses.ts. */
import * as z from 'zod/mini';
import { ALERT_FORMATS, ALERT_MEASURES, ALERT_PERIODS, DELIVERY_STATES, WEBHOOK_TYPES } from '../alert.js';
import {
  amount,
  billingDimension,
  decimalString,
  described,
  instant,
  listPage,
  resourceType,
  wholeNumber,
} from './responses.js';

const percent = () => wholeNumber({ minimum: 1, description: 'Percent of the amount.' });
const value = () => amount("The period's exact cost or usage when the crossing was detected.");

const forecast = () => amount("The period's forecast when it reached the percentage.");

const firedThresholdSchema = z.object({ threshold: percent(), value: value(), firedAt: instant() });
const firedForecastSchema = z.extend(firedThresholdSchema, { forecast: forecast() });

export const alertSchema = z.object({
  id: described(z.string(), 'The {alertId} in paths.'),
  name: z.string(),
  period: described(z.enum(ALERT_PERIODS), 'A calendar day or month in UTC.'),
  measure: described(z.enum(ALERT_MEASURES), '`usage` is the usage of the one billing dimension in `filters`.'),
  amount: decimalString('A decimal: USD, or units of the billing dimension.'),
  thresholds: described(z.array(percent()), 'In percent of the amount, ascending.'),
  forecast: described(z.array(percent()), 'Thresholds of the forecast, in percent of the amount, ascending.'),
  filters: described(
    z.object({
      workspace: z.optional(z.array(z.string())),
      resourceType: z.optional(z.array(resourceType())),
      resourceName: z.optional(z.array(z.string())),
      resourceUuid: z.optional(z.array(z.string())),
      billingDimension: z.optional(z.array(billingDimension())),
    }),
    'Which usage counts, like the filters of the metrics.',
  ),
  format: described(z.optional(z.enum(ALERT_FORMATS)), 'What is posted to the URL. Missing in an alert by e-mail.'),
  url: described(
    z.optional(z.string()),
    'Only the origin for Slack and Teams, and for callers who may not change the alert: the path may hold a secret.',
  ),
  to: described(
    z.optional(z.array(z.string())),
    'The e-mail addresses of an alert by e-mail. Callers who may not change the alert see only the domains.',
  ),
  createdAt: instant(),
  updatedAt: instant(),
  fired: described(z.array(firedThresholdSchema), 'The thresholds crossed in the current period.'),
  forecastFired: described(z.array(firedForecastSchema), 'The thresholds that the forecast of the month reached.'),
});
export type AlertResponse = z.output<typeof alertSchema>;

/** The response for versions before 2026-04-28, in which lists were not paginated. */
export const alertArraySchema = z.array(alertSchema);
export const alertPageSchema = listPage(alertSchema);

export const alertWithSecretSchema = z.extend(alertSchema, {
  secret: described(
    z.optional(z.string()),
    'Signs webhooks (Standard Webhooks). Returned only once, when it is created. Slack, Teams and e-mail have none.',
  ),
});
/** A new or changed alert. It includes the secret only if the secret is new. */
export type AlertWithSecretResponse = z.output<typeof alertWithSecretSchema>;

export const webhookSchema = z.object({
  type: z.enum(WEBHOOK_TYPES),
  timestamp: instant('When the crossing was detected.'),
  data: z.object({
    alertId: z.string(),
    accountId: z.string(),
    name: z.string(),
    period: z.object({ startTime: instant(), endTime: instant() }),
    measure: z.enum(ALERT_MEASURES),
    amount: amount('The amount of the alert.'),
    threshold: z.optional(percent()),
    value: z.optional(value()),
    forecast: described(z.optional(forecast()), 'Only in `usage.forecast_reached`.'),
  }),
});
export type WebhookBody = z.output<typeof webhookSchema>;

export const deliverySchema = z.object({
  id: described(z.string(), 'The {deliveryId} in paths, and the header `webhook-id` of every attempt.'),
  createdAt: instant(),
  state: described(
    z.enum(DELIVERY_STATES),
    '`pending`: Meterline will try again. `failed`: all attempts failed; a resend starts new ones.',
  ),
  attempts: wholeNumber({ minimum: 0, description: 'The number of attempts so far.' }),
  lastAttemptAt: z.optional(instant()),
  lastOutcome: described(z.optional(z.string()), 'The status of the last attempt, or why there was no response.'),
  to: described(z.optional(z.string()), 'The recipient of an e-mail. Each recipient has a delivery.'),
  payload: webhookSchema,
});
export type DeliveryResponse = z.output<typeof deliverySchema>;

export const deliveryArraySchema = z.array(deliverySchema);
export const deliveryPageSchema = listPage(deliverySchema);
