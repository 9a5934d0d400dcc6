/**
 * Defines the API's responses as `readExactJson` parses them, with numbers as decimal text. Unknown members are ignored, because a later service
 * may add members. The metadata of a schema is for the OpenAPI document, so it describes the JSON as it is sent.
 *
 * The schemas use `zod/mini`, because the client brings them into pages of other companies. It is a third of zod's size and needs no eval
 * (docs/decisions/0013). Source: docs/api-contract.md.
 */
import * as z from 'zod/mini';
import { RESOLUTIONS } from '../calendar.js';
import { type DecimalText, isDecimalText } from '../decimal.js';
import { BUILT_IN_DIMENSION_NAMES, BUILT_IN_RESOURCE_TYPES, GROUP_BY_DIMENSIONS } from '../dimensions.js';
import { ACCOUNT_KEY_ROLES, EXTENSIBLE, LISTED_ROLES } from './request.js';

export function amount(description: string) {
  return described(decimal<DecimalText>(), { type: 'number', minimum: 0, description });
}

/** Returns the schema of a decimal that JSON represents as a string. */
export function decimalString(description: string) {
  return described(decimal<string>(), { type: 'string', description });
}

function decimal<Text extends string>() {
  return z.custom<Text>((value) => typeof value === 'string' && isDecimalText(value), 'must be a decimal');
}

/** @param meta a description, or several JSON Schema keywords */
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

const code = (examples: readonly string[]) => (description?: string) =>
  described(z.string(), { description: [description, EXTENSIBLE].filter(Boolean).join(' '), examples: [...examples] });
export const resourceType = code(BUILT_IN_RESOURCE_TYPES);
export const billingDimension = code(BUILT_IN_DIMENSION_NAMES);
const unit = code(['gbs', 'count', 'hours']);

function nextCursor() {
  return described(z.string(), 'The `cursor` of the next page; empty on the last page.');
}

function hasMore() {
  return described(z.boolean(), 'Whether there are more pages.');
}

/** Returns the schema of a list in the management API since version 2026-04-28. Source: docs/api-contract.md, "Pages". */
export function listPage<Item extends z.ZodMiniType>(item: Item) {
  return z.object({
    data: z.array(item),
    meta: z.object({
      hasMore: hasMore(),
      nextCursor: nextCursor(),
      total: wholeNumber({ minimum: 0, description: 'The number of items on all pages.' }),
    }),
  });
}

const cost = () => amount('USD, exact to 12 decimals. Parse it as a decimal: a double keeps about 15 digits.');
const usage = () =>
  z.optional(amount("In the billing dimension's unit, exact to 9 decimals. Only if grouped by billing_dimension."));

export const metricsPointSchema = z.object({
  timestamp: instant('The calendar start of the bucket in UTC. The first bucket may start before startTime.'),
  cost: cost(),
  usage: usage(),
});
export type MetricsPoint = z.output<typeof metricsPointSchema>;

export const metricsEntrySchema = z.object({
  account: described(z.optional(z.string()), 'With groupBy account, in responses about several accounts.'),
  workspace: described(
    z.optional(z.string()),
    'With groupBy workspace. With resource_name or resource_uuid only for an admin, and only if all usage of the group ' +
      'belongs to this workspace.',
  ),
  resourceType: described(
    z.optional(resourceType()),
    'With groupBy resource_type or billing_dimension. With resource_name or resource_uuid only if all usage of the group ' +
      'has this type.',
  ),
  resourceName: described(
    z.optional(z.string()),
    'With groupBy resource_name. With resource_uuid only if all usage of the group has this name.',
  ),
  resourceUuid: described(
    z.optional(z.string()),
    'With groupBy resource_uuid; empty for usage without a resource UUID.',
  ),
  billingDimension: described(z.optional(billingDimension()), 'With groupBy billing_dimension.'),
  summary: z.object({ cost: cost(), usage: usage() }),
  timeseries: described(
    z.array(metricsPointSchema),
    'One item per bucket of the window. Buckets without activity have cost 0.',
  ),
});
export type MetricsEntry = z.output<typeof metricsEntrySchema>;

export const metricsResponseSchema = z.object({
  startTime: instant(),
  endTime: instant(),
  resolution: described(z.enum(RESOLUTIONS), 'The applied resolution.'),
  summary: described(
    z.object({
      totalCost: cost(),
      totalUsage: z.optional(
        amount(
          'The sum of `usage` over all groups. Meaningless across units: filter by dimensions of one unit. Only if grouped ' +
            'by billing_dimension.',
        ),
      ),
    }),
    'Totals of the whole window, the same on every page.',
  ),
  data: described(z.array(metricsEntrySchema), 'Groups, highest cost first. Without groupBy, one entry.'),
  meta: z.object({ hasMore: hasMore(), nextCursor: nextCursor() }),
});
export type MetricsResponse = z.output<typeof metricsResponseSchema>;

export const groupByEnumSchema = z.object({ values: z.array(z.enum(GROUP_BY_DIMENSIONS)) });
export const resourceTypesEnumSchema = z.object({ values: z.array(resourceType()) });

export const billingDimensionsEnumSchema = z.object({
  values: z.array(
    z.object({
      billingDimension: billingDimension(),
      resourceType: resourceType('The resource type that the dimension belongs to.'),
      unit: unit('The unit of `usage`: GB-seconds, events, hours, or the word itself.'),
      price: described(
        z.optional(
          z.object({
            amount: decimalString('USD for `per` units.'),
            per: decimalString('Units of the billing dimension.'),
            currency: z.enum(['USD']),
            effectiveFrom: instant(),
          }),
        ),
        "The account's current price. Left out before the first price takes effect, and before an ingest worker has registered a price book.",
      ),
    }),
  ),
});
export type BillingDimensionResponse = z.output<typeof billingDimensionsEnumSchema>['values'][number];

export const eventRevisionSchema = z.object({
  timestamp: instant(),
  workspace: z.string(),
  resourceType: resourceType(),
  resourceName: z.string(),
  resourceUuid: described(z.string(), 'Empty if the event has none.'),
  billingDimension: billingDimension(),
  usage: amount("In the billing dimension's unit, exact to 9 decimals."),
  cost: amount('USD, exact to 12 decimals: usage × price.amount ÷ price.per, rounded half-even once.'),
  voided: described(z.boolean(), 'Whether the event is void and does not count.'),
  revision: wholeNumber({ minimum: 0, description: 'The revision that the producer sent.' }),
  priceRevision: wholeNumber({ minimum: 0, description: 'How often this payload was priced again.' }),
  priceBook: wholeNumber({ minimum: 0, description: 'The version of the price book used.' }),
  price: described(
    z.optional(
      z.object({
        amount: amount('USD for `per` units.'),
        per: amount('Units of the billing dimension.'),
        effectiveFrom: instant('When this price took effect.'),
      }),
    ),
    "The book's price for this account, dimension and time. Left out if the book is not registered.",
  ),
});
export type EventRevision = z.output<typeof eventRevisionSchema>;

export const eventSchema = z.extend(eventRevisionSchema, {
  eventId: described(z.string(), {
    description: 'A lowercase UUID.',
    pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
  }),
  history: described(
    z.array(eventRevisionSchema),
    'Replaced payloads, newest first: earlier revisions and prices, at most 20. The store removes them in the background, ' +
      'so the list may lack some; `revision` and `priceRevision` tell whether there were any.',
  ),
});
export type EventResponse = z.output<typeof eventSchema>;

export const eventPageSchema = z.object({
  data: described(z.array(eventSchema), 'Ordered by `orderBy` and `order`.'),
  meta: z.object({ hasMore: hasMore(), nextCursor: nextCursor() }),
});
export type EventPage = z.output<typeof eventPageSchema>;

export const accountSchema = z.object({
  id: described(z.string(), 'The {accountId} in paths.'),
  name: described(z.string(), 'The display name; the account ID if no name was set.'),
  role: described(
    z.enum(LISTED_ROLES),
    "The caller's role. A member sees the account as a whole, an admin also its workspaces. An operator reads like an admin. A provisioner only names accounts and manages keys.",
  ),
  createdAt: z.optional(instant('When the account was first named or got its first API key. Left out before.')),
});
export type AccountResponse = z.output<typeof accountSchema>;

/** The response for versions before 2026-04-28, in which lists were not paginated. */
export const accountArraySchema = z.array(accountSchema);
export const accountPageSchema = listPage(accountSchema);

export const errorResponseSchema = z.object({
  code: wholeNumber({ minimum: 400, maximum: 599, description: 'The HTTP status.' }),
  error: described(z.string(), { description: 'A stable code to branch on.', pattern: '^[a-z]+(_[a-z]+)*$' }),
  message: described(z.string(), 'How to fix the request.'),
  details: described(
    z.optional(z.array(z.record(z.string(), z.string()))),
    'One item per error, such as `{parameter, message}`.',
  ),
  requestId: described(z.string(), 'Quote this ID in support requests. Also in the header X-Request-Id.'),
});

/** The API keys of a service account. The platform defines their paths and scopes, but not these fields. */

export const apiKeySchema = z.object({
  id: described(z.string(), 'The {apiKeyId} in paths; not the key itself.'),
  clientId: described(z.string(), "The key's service account, the {clientId} in paths."),
  account: described(z.string(), 'The account that the key belongs to.'),
  role: described(z.enum(ACCOUNT_KEY_ROLES), 'The role of the key in the account.'),
  createdAt: instant(),
  expiresAt: z.optional(instant('When the key expires. Left out if it does not.')),
  lastUsedAt: z.optional(instant('The UTC hour in which the key was last used. Left out before its first use.')),
  revoked: z.boolean(),
  revokedAt: z.optional(instant()),
});
export type ApiKeyResponse = z.output<typeof apiKeySchema>;

export const apiKeyArraySchema = z.array(apiKeySchema);
export const apiKeyPageSchema = listPage(apiKeySchema);

export const createdApiKeySchema = z.extend(apiKeySchema, {
  key: described(z.string(), 'The key itself, which is returned only once.'),
});
export type CreatedApiKeyResponse = z.output<typeof createdApiKeySchema>;

export const savedViewSchema = z.object({
  name: z.string(),
  query: described(z.string(), "The part of the page's address after the question mark, without the account."),
  createdAt: instant(),
  updatedAt: instant(),
});
export type SavedViewResponse = z.output<typeof savedViewSchema>;
export const savedViewArraySchema = z.array(savedViewSchema);
export const savedViewPageSchema = listPage(savedViewSchema);
