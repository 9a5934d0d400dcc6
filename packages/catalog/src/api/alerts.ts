/** Defines the bodies of requests that create or change alerts. */
import * as z from 'zod';
import {
  ALERT_FORMATS,
  ALERT_MEASURES,
  ALERT_PERIODS,
  DEFAULT_THRESHOLDS,
  MAX_RECIPIENTS,
  MAX_THRESHOLD,
  MAX_THRESHOLDS,
} from '../alert.js';
import { decimalText, formatScaled, parseDecimalText, toScaled } from '../decimal.js';
import { nameText, oneOf, VALUE_FILTERS } from './parameters.js';
import { MAX_FILTER_VALUES } from './request.js';

const AMOUNT_RULE =
  'must be a decimal string above 0, such as "100" or "0.25", without leading zeros and with at most 15 digits before the point and 12 after it';
/** The maximum number of fraction digits of an amount. Costs have this many, and usage has fewer. */
const AMOUNT_SCALE = 12;
/** Rejects leading zeros, because `0125` may be a typo of `0.125`. */
const AMOUNT = /^(0|[1-9]\d{0,14})(\.\d{1,12})?$/;

const amountText = z
  .string({ error: AMOUNT_RULE })
  .transform((text, context) => {
    const digits = AMOUNT.test(text) ? parseDecimalText(text) : undefined;
    const scaled = digits ? toScaled(digits, AMOUNT_SCALE) : 0n;
    if (scaled > 0n) return decimalText(formatScaled(scaled, AMOUNT_SCALE));
    context.addIssue({ code: 'custom', message: AMOUNT_RULE });
    return z.NEVER;
  })
  .meta({
    pattern: AMOUNT.source,
    description: 'A decimal string above 0: USD for `cost`, units of the billing dimension for `usage`.',
  });

const THRESHOLDS_RULE = `must be at most ${MAX_THRESHOLDS} whole numbers from 1 to ${MAX_THRESHOLD}, ascending`;
const percents = z
  .array(z.int(THRESHOLDS_RULE).min(1, THRESHOLDS_RULE).max(MAX_THRESHOLD, THRESHOLDS_RULE), THRESHOLDS_RULE)
  .max(MAX_THRESHOLDS, THRESHOLDS_RULE)
  .refine((list) => list.every((percent, index) => index === 0 || percent > (list[index - 1] ?? 0)), THRESHOLDS_RULE);
const thresholds = percents.meta({
  description: 'In percent of the amount, ascending. For an absolute amount, set `amount` and the threshold 100.',
});
const forecast = percents.meta({
  description:
    'Fires when the forecast of the month reaches these percentages of the amount. Only for the period `month`.',
});

const values = <Schema extends z.ZodType<string>>(schema: Schema) =>
  z
    .array(schema, 'must be an array')
    .min(1, 'must have a value or be left out')
    .max(MAX_FILTER_VALUES, `must have at most ${MAX_FILTER_VALUES} values`);

const FILTERS = {
  workspace: values(VALUE_FILTERS.workspace).optional(),
  resourceType: values(VALUE_FILTERS.resourceType).optional(),
  resourceName: values(VALUE_FILTERS.resourceName).optional(),
  resourceUuid: values(VALUE_FILTERS.resourceUuid).optional(),
  billingDimension: values(VALUE_FILTERS.billingDimension).optional(),
};
const FILTERS_RULE = `must be an object of arrays, with no members but ${Object.keys(FILTERS).join(', ')}`;
const filters = z.strictObject(FILTERS, FILTERS_RULE).meta({
  description: 'Which usage counts. Values of one filter are alternatives; usage must match every filter.',
});
export type AlertFilters = z.output<typeof filters>;

const MAX_URL_LENGTH = 2_048;
/** Source: RFC 5321, section 4.5.3.1.3, without the angle brackets. */
const MAX_ADDRESS_LENGTH = 254;
const URL_RULE = `must be an https URL of at most ${MAX_URL_LENGTH} characters without user and password, such as https://example.com/hooks`;
const webhookUrl = z.string({ error: URL_RULE }).refine(isWebhookUrl, { error: URL_RULE, abort: true }).meta({
  format: 'uri',
  maxLength: MAX_URL_LENGTH,
  description:
    'Where the alert is posted. Must be https and must not lead to a private network. Required without `to`.',
});

const TO_RULE = `must be 1 to ${MAX_RECIPIENTS} different e-mail addresses`;
const recipients = z
  .array(z.email(TO_RULE).max(MAX_ADDRESS_LENGTH, TO_RULE), TO_RULE)
  .refine((list) => list.length > 0 && list.length <= MAX_RECIPIENTS && new Set(list).size === list.length, TO_RULE)
  .meta({
    ...{ minItems: 1, maxItems: MAX_RECIPIENTS, uniqueItems: true },
    description: 'Addresses that get an e-mail, instead of `url`. The operator must have set a mail server.',
  });

function isWebhookUrl(text: string): boolean {
  // The URL parser drops blanks and line breaks, but the stored string, which users see, would keep them.
  if (text.length > MAX_URL_LENGTH || /\s/.test(text) || !URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === '';
}

export const newAlertSchema = z.strictObject({
  name: nameText,
  period: oneOf(ALERT_PERIODS).meta({ description: 'A calendar day or month in UTC.' }),
  measure: oneOf(ALERT_MEASURES).meta({
    description: '`usage` needs exactly one `billingDimension` among the filters.',
  }),
  amount: amountText,
  thresholds: thresholds.default([...DEFAULT_THRESHOLDS]),
  forecast: forecast.default([]),
  filters: filters.default({}),
  format: oneOf(ALERT_FORMATS)
    .meta({ description: 'A signed webhook (default), or a message to an incoming webhook, whose URL is a secret.' })
    .optional(),
  url: webhookUrl.optional(),
  to: recipients.optional(),
});
export type NewAlert = z.input<typeof newAlertSchema>;

/** A change to an alert. Omitted members stay unchanged. */
export const alertChangeSchema = z.strictObject({
  ...newAlertSchema.omit({ format: true }).partial().shape,
  thresholds: thresholds.optional(),
  forecast: forecast.optional(),
  filters: filters.optional(),
  rotateSecret: z.literal(true, 'must be true or left out').optional().meta({
    description: 'Creates a new secret, which the response includes. The last nine secrets also sign for 24 hours.',
  }),
});
export type AlertChange = z.input<typeof alertChangeSchema>;
