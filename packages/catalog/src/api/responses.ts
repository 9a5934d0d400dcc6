/**
 * The API's answers as `readExactJson` reads them: numbers are decimal text. Unknown members, which a later service may
 * add, are ignored. What is registered for a schema describes the JSON on the wire, for the OpenAPI document.
 *
 * With `zod/mini`, because the client brings these schemas into other people's pages: it is a third of zod's weight, and
 * needs no eval (docs/decisions/0013). Source: the API specification, sections "Billing API", "Limits" and "Errors".
 */
import * as z from 'zod/mini';
import { RESOLUTIONS } from '../calendar.js';
import { type DecimalText, isDecimalText } from '../decimal.js';
import { BILLING_DIMENSIONS, GROUP_BY_DIMENSIONS, RESOURCE_TYPES, UNITS } from '../dimensions.js';
import { ACCOUNT_KEY_ROLES, LISTED_ROLES } from './request.js';

export function amount(description: string) {
  return described(decimal<DecimalText>(), { type: 'number', minimum: 0, description });
}

/** A decimal that is a string in JSON. */
export function decimalString(description: string) {
  return described(decimal<string>(), { type: 'string', description });
}

function decimal<Text extends string>() {
  return z.custom<Text>((value) => typeof value === 'string' && isDecimalText(value), 'must be a decimal');
}

/** @param meta a description, or more of JSON Schema */
export function described<Schema extends z.ZodMiniType>(schema: Schema, meta: string | z.core.GlobalMeta): Schema {
  z.globalRegistry.add(schema, typeof meta === 'string' ? { description: meta } : meta);
  return schema;
}

export function wholeNumber(meta: z.core.GlobalMeta) {
  const isWhole = (value: unknown) => typeof value === 'string' && /^\d{1,15}$/.test(value);
  return z.pipe(
    described(z.custom<string>(isWhole, 'must be a whole number'), { type: 'integer', ...meta }),
    z.transform(Number),
  );
}

export function instant(description?: string) {
  return described(z.string(), { format: 'date-time', ...(description !== undefined && { description }) });
}

function nextCursor() {
  return described(z.string(), '`cursor` of the next page; empty when there is none.');
}

function hasMore() {
  return described(z.boolean(), 'Whether there is another page.');
}

/** A list of the management API since version 2026-04-28. Source: the API specification, section "Limits". */
export function listPage<Item extends z.ZodMiniType>(item: Item) {
  return z.object({
    data: z.array(item),
    meta: z.object({
      hasMore: hasMore(),
      nextCursor: nextCursor(),
      total: wholeNumber({ minimum: 0, description: 'Of all pages.' }),
    }),
  });
}

const cost = () => amount('USD, exact to 12 decimals. Read it as a decimal: a double keeps 15 digits.');
const usage = () =>
  z.optional(amount("In the billing dimension's unit, exact to 9 decimals. Only when grouped by billing_dimension."));

export const metricsPointSchema = z.object({
  timestamp: instant('The calendar start of the bucket, in UTC; of the first one it may lie before startTime.'),
  cost: cost(),
  usage: usage(),
});
/** One bucket of a series. */
export type MetricsPoint = z.output<typeof metricsPointSchema>;

export const metricsEntrySchema = z.object({
  account: described(z.optional(z.string()), 'With groupBy account, in a response about several accounts.'),
  workspace: described(
    z.optional(z.string()),
    'With groupBy workspace. With resource_name or resource_uuid only for an admin, and where all usage of the group is ' +
      'of this workspace; left out where it is of several.',
  ),
  resourceType: described(
    z.optional(z.enum(RESOURCE_TYPES)),
    'With groupBy resource_type or billing_dimension. With resource_name or resource_uuid where all usage of the group ' +
      'is of this type; left out where it is of several.',
  ),
  resourceName: described(
    z.optional(z.string()),
    'With groupBy resource_name. With resource_uuid where all usage of the group is of this name; left out where it is ' +
      'of several.',
  ),
  resourceUuid: described(z.optional(z.string()), 'With groupBy resource_uuid; empty for what has none.'),
  billingDimension: described(z.optional(z.enum(BILLING_DIMENSIONS)), 'With groupBy billing_dimension.'),
  summary: z.object({ cost: cost(), usage: usage() }),
  timeseries: described(
    z.array(metricsPointSchema),
    'One item for each bucket of the window; those without activity have cost 0.',
  ),
});
/** One group, with its series over the whole window. */
export type MetricsEntry = z.output<typeof metricsEntrySchema>;

export const metricsResponseSchema = z.object({
  startTime: instant(),
  endTime: instant(),
  resolution: described(z.enum(RESOLUTIONS), 'The one that was applied.'),
  summary: described(
    z.object({
      totalCost: cost(),
      totalUsage: z.optional(
        amount(
          'The sum of `usage` over all groups. Meaningless for several units: filter by dimensions of one unit. Only when ' +
            'grouped by billing_dimension.',
        ),
      ),
    }),
    'Of the whole window, on every page.',
  ),
  data: described(z.array(metricsEntrySchema), 'By cost, the highest first. One entry when groupBy is left out.'),
  meta: z.object({ hasMore: hasMore(), nextCursor: nextCursor() }),
});
/** A page of GET …/metrics. */
export type MetricsResponse = z.output<typeof metricsResponseSchema>;

export const groupByEnumSchema = z.object({ values: z.array(z.enum(GROUP_BY_DIMENSIONS)) });
export const resourceTypesEnumSchema = z.object({ values: z.array(z.enum(RESOURCE_TYPES)) });

export const billingDimensionsEnumSchema = z.object({
  values: z.array(
    z.object({
      billingDimension: z.enum(BILLING_DIMENSIONS),
      resourceType: described(z.enum(RESOURCE_TYPES), 'The only one that it belongs to.'),
      unit: described(z.enum(UNITS), 'Of `usage`: GB-seconds, events or hours.'),
      price: described(
        z.optional(
          z.object({
            amount: decimalString('USD for `per` units.'),
            per: decimalString('Units of the billing dimension.'),
            currency: z.enum(['USD']),
            effectiveFrom: instant(),
          }),
        ),
        'In force now for this account; left out before the first price, and before an ingest worker has registered a price book.',
      ),
    }),
  ),
});
/** A billing dimension: its resource type, unit, and price in force. */
export type BillingDimensionResponse = z.output<typeof billingDimensionsEnumSchema>['values'][number];

export const eventRevisionSchema = z.object({
  timestamp: instant(),
  workspace: z.string(),
  resourceType: z.enum(RESOURCE_TYPES),
  resourceName: z.string(),
  resourceUuid: described(z.string(), 'Empty where the event has none.'),
  billingDimension: z.enum(BILLING_DIMENSIONS),
  usage: amount("In the billing dimension's unit, exact to 9 decimals."),
  cost: amount('USD, exact to 12 decimals: usage × price.amount ÷ price.per, rounded half-even once.'),
  voided: described(z.boolean(), 'Whether it does not count.'),
  revision: wholeNumber({ minimum: 0, description: "The producer's, of the event." }),
  priceRevision: wholeNumber({ minimum: 0, description: 'How often this payload was priced again.' }),
  priceBook: wholeNumber({ minimum: 0, description: 'The version of the price book that it was priced with.' }),
  price: described(
    z.optional(
      z.object({
        amount: amount('USD for `per` units.'),
        per: amount('Units of the billing dimension.'),
        effectiveFrom: instant('From when on the book has this price.'),
      }),
    ),
    'What the book says for this account, dimension and time; left out where the book is not on record.',
  ),
});
/** One payload of an event, and what it was priced at. */
export type EventRevision = z.output<typeof eventRevisionSchema>;

export const eventSchema = z.extend(eventRevisionSchema, {
  eventId: described(z.string(), {
    description: 'UUID in lower case.',
    pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
  }),
  history: described(
    z.array(eventRevisionSchema),
    'What it replaced, the newest first: earlier revisions and prices, at most 20. The store removes them in the background, ' +
      'so a list that is short or empty does not mean that there were none; `revision` and `priceRevision` do.',
  ),
});
/** An event as it counts now. */
export type EventResponse = z.output<typeof eventSchema>;

export const eventPageSchema = z.object({
  data: described(z.array(eventSchema), 'By UTC hour, then by id.'),
  meta: z.object({ hasMore: hasMore(), nextCursor: nextCursor() }),
});
/** A page of GET …/events. */
export type EventPage = z.output<typeof eventPageSchema>;

export const accountSchema = z.object({
  id: described(z.string(), 'The {accountId} of paths.'),
  name: described(z.string(), 'What the platform calls it; the id of one that nobody has named.'),
  role: described(
    z.enum(LISTED_ROLES),
    "The caller's. A member sees the account as a whole, an admin also its workspaces; an operator reads as an admin; a provisioner only names accounts and manages keys.",
  ),
  createdAt: z.optional(instant('When it was named or got its first API key; left out before that.')),
});
/** An account that the caller belongs to, or may see. */
export type AccountResponse = z.output<typeof accountSchema>;

/** GET /v0/accounts before lists were paginated. */
export const accountArraySchema = z.array(accountSchema);
/** GET /v0/accounts since then. */
export const accountPageSchema = listPage(accountSchema);

export const errorResponseSchema = z.object({
  code: wholeNumber({ minimum: 400, maximum: 599, description: 'The HTTP status.' }),
  error: described(z.string(), { description: 'A stable word to branch on.', pattern: '^[a-z]+(_[a-z]+)*$' }),
  message: described(z.string(), 'How to fix the request.'),
  details: described(
    z.optional(z.array(z.record(z.string(), z.string()))),
    'Each error, such as `{parameter, message}`.',
  ),
  requestId: described(z.string(), 'Quote it when asking for help. Also in the header X-Request-Id.'),
});

/*
 * API keys of a service account. The specification names the form of the paths and the scopes; the members are ours.
 */

export const apiKeySchema = z.object({
  id: described(z.string(), 'The {apiKeyId} of paths; not the key itself.'),
  clientId: described(z.string(), 'Its service account, the {clientId} of paths.'),
  account: described(z.string(), 'The account that the key is of.'),
  role: described(z.enum(ACCOUNT_KEY_ROLES), 'What the key may do there.'),
  createdAt: instant(),
  expiresAt: z.optional(instant('From then on the key is refused; left out if it does not expire.')),
  lastUsedAt: z.optional(instant('The UTC hour in which the key was last used; left out before its first use.')),
  revoked: z.boolean(),
  revokedAt: z.optional(instant()),
});
/** A key of a service account, without its text. */
export type ApiKeyResponse = z.output<typeof apiKeySchema>;

/** The list before lists were paginated. */
export const apiKeyArraySchema = z.array(apiKeySchema);
/** The list since then. */
export const apiKeyPageSchema = listPage(apiKeySchema);

export const createdApiKeySchema = z.extend(apiKeySchema, {
  key: described(z.string(), 'The key itself, which is shown only this once.'),
});
/** A new key, the only time that it is shown. */
export type CreatedApiKeyResponse = z.output<typeof createdApiKeySchema>;
