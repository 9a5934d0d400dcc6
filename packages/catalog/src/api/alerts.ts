/** The bodies of requests about alerts. */
import * as z from 'zod';
import { ALERT_MEASURES, ALERT_PERIODS, DEFAULT_THRESHOLDS, MAX_THRESHOLD, MAX_THRESHOLDS } from '../alert.js';
import { decimalText, formatScaled, parseDecimalText, toScaled } from '../decimal.js';
import { nameText, oneOf, VALUE_FILTERS } from './parameters.js';
import { MAX_FILTER_VALUES } from './request.js';

const AMOUNT_RULE =
  'must be a decimal above 0 in a string, such as "100" or "0.25", without leading zeros, of at most 15 digits before the point and 12 after it';
/** As costs have, the finer of what is measured. */
const AMOUNT_SCALE = 12;
/** `0125` may be meant as 0.125. */
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
    description: 'Above 0, a decimal in a string: USD for `cost`, units of the billing dimension for `usage`.',
  });

const THRESHOLDS_RULE = `must be 1 to ${MAX_THRESHOLDS} whole numbers from 1 to ${MAX_THRESHOLD}, ascending`;
const thresholds = z
  .array(z.int(THRESHOLDS_RULE).min(1, THRESHOLDS_RULE).max(MAX_THRESHOLD, THRESHOLDS_RULE), THRESHOLDS_RULE)
  .min(1, THRESHOLDS_RULE)
  .max(MAX_THRESHOLDS, THRESHOLDS_RULE)
  .refine((list) => list.every((percent, index) => index === 0 || percent > (list[index - 1] ?? 0)), THRESHOLDS_RULE)
  .meta({ description: 'Percents of the amount, ascending. An absolute amount is `amount` with the threshold 100.' });

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
  description: 'What usage must have to be counted: of one filter one of its values, of several filters all.',
});
export type AlertFilters = z.output<typeof filters>;

const MAX_URL_LENGTH = 2_048;
const URL_RULE = `must be an https URL of at most ${MAX_URL_LENGTH} characters without user and password, such as https://example.com/hooks`;
const webhookUrl = z.string({ error: URL_RULE }).refine(isWebhookUrl, URL_RULE).meta({
  format: 'uri',
  maxLength: MAX_URL_LENGTH,
  description: 'Where webhooks are posted: https, and no address of a private network.',
});

function isWebhookUrl(text: string): boolean {
  // A URL that is parsed drops blanks and line breaks, and what is shown would have them.
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
  filters: filters.default({}),
  url: webhookUrl,
});
export type NewAlert = z.input<typeof newAlertSchema>;

/** Members that are left out stay as they are; those that are given replace what was there. */
export const alertChangeSchema = z.strictObject({
  ...newAlertSchema.partial().shape,
  thresholds: thresholds.optional(),
  filters: filters.optional(),
  rotateSecret: z
    .literal(true, 'must be true or left out')
    .optional()
    .meta({ description: 'Makes a new secret, which the response has. The last nine sign too for 24 hours.' }),
});
export type AlertChange = z.input<typeof alertChangeSchema>;
