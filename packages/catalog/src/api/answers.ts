/**
 * The API's answers as `readExactJson` reads them: numbers are decimal text. Unknown members, which a later service may
 * add, are ignored. `meta` describes the JSON on the wire, for the OpenAPI document.
 * Source: the API specification, sections "Billing API", "Limits" and "Errors".
 */
import * as z from 'zod';
import { RESOLUTIONS } from '../calendar.js';
import { ROLES } from '../caller.js';
import { type DecimalText, isDecimalText } from '../decimal.js';
import { BILLING_DIMENSIONS, RESOURCE_TYPES } from '../dimensions.js';
import { GROUP_BY_DIMENSIONS } from '../group-by.js';

const amount = z
  .custom<DecimalText>((value) => typeof value === 'string' && isDecimalText(value), 'must be a decimal')
  .meta({ type: 'number', minimum: 0 });
const cost = amount.meta({
  type: 'number',
  minimum: 0,
  description: 'USD, exact to 12 decimals. Read it as a decimal: a double keeps 15 digits.',
});
const usage = amount.meta({
  type: 'number',
  minimum: 0,
  description: "In the billing dimension's unit, exact to 9 decimals. Only when grouped by billing_dimension.",
});

const WHOLE_NUMBER = /^\d{1,15}$/;
const wholeNumber = z
  .custom<string>((value) => typeof value === 'string' && WHOLE_NUMBER.test(value), 'must be a whole number')
  .transform(Number);

const instant = z.string().meta({ format: 'date-time' });
const nextCursor = z.string().meta({ description: '`cursor` of the next page; empty when there is none.' });
const hasMore = z.boolean().meta({ description: 'Whether there is another page.' });

export const metricsPointSchema = z.object({
  timestamp: instant.meta({
    format: 'date-time',
    description: 'The calendar start of the bucket, in UTC; of the first one it may lie before startTime.',
  }),
  cost,
  usage: usage.optional(),
});
/** One bucket of a series. */
export type MetricsPoint = z.output<typeof metricsPointSchema>;

export const metricsEntrySchema = z.object({
  workspace: z.string().optional().meta({ description: 'With groupBy workspace, resource_name or resource_uuid.' }),
  resourceType: z
    .enum(RESOURCE_TYPES)
    .optional()
    .meta({ description: 'With groupBy resource_type, resource_name, resource_uuid or billing_dimension.' }),
  resourceName: z.string().optional().meta({ description: 'With groupBy resource_name or resource_uuid.' }),
  resourceUuid: z.string().optional().meta({ description: 'With groupBy resource_uuid; empty for what has none.' }),
  billingDimension: z.enum(BILLING_DIMENSIONS).optional().meta({ description: 'With groupBy billing_dimension.' }),
  summary: z.object({ cost, usage: usage.optional() }),
  timeseries: z
    .array(metricsPointSchema)
    .meta({ description: 'One item for each bucket of the window; those without activity have cost 0.' }),
});
/** One group, with its series over the whole window. */
export type MetricsEntry = z.output<typeof metricsEntrySchema>;

export const metricsAnswerSchema = z.object({
  startTime: instant,
  endTime: instant,
  resolution: z.enum(RESOLUTIONS).meta({ description: 'The one that was applied.' }),
  summary: z
    .object({ totalCost: cost, totalUsage: usage.optional() })
    .meta({ description: 'Of the whole window, on every page.' }),
  data: z
    .array(metricsEntrySchema)
    .meta({ description: 'By cost, the highest first. One entry when groupBy is left out.' }),
  meta: z.object({ hasMore, nextCursor }),
});
/** A page of GET …/metrics. */
export type MetricsAnswer = z.output<typeof metricsAnswerSchema>;

export const groupByEnumSchema = z.object({ values: z.array(z.enum(GROUP_BY_DIMENSIONS)) });
export const resourceTypesEnumSchema = z.object({ values: z.array(z.enum(RESOURCE_TYPES)) });

export const accountSchema = z.object({
  id: z.string().meta({ description: 'The {accountId} of paths.' }),
  name: z.string(),
  role: z.enum(ROLES).meta({
    description: "The caller's: an admin may group and filter by workspace, a member sees the account as a whole.",
  }),
  createdAt: instant,
});
/** An account that the caller belongs to. */
export type AccountAnswer = z.output<typeof accountSchema>;

/** GET /v0/accounts before lists were paginated. */
export const accountArraySchema = z.array(accountSchema);
/** GET /v0/accounts since then. */
export const accountPageSchema = z.object({
  data: z.array(accountSchema),
  meta: z.object({
    hasMore,
    nextCursor,
    total: wholeNumber.meta({ type: 'integer', minimum: 0, description: 'Of all pages.' }),
  }),
});

export const errorAnswerSchema = z.object({
  code: wholeNumber.meta({ type: 'integer', minimum: 400, maximum: 599, description: 'The HTTP status.' }),
  error: z.string().meta({ description: 'A stable word to branch on.', pattern: '^[a-z]+(_[a-z]+)*$' }),
  message: z.string().meta({ description: 'How to fix the request.' }),
  details: z
    .array(z.record(z.string(), z.string()))
    .optional()
    .meta({ description: 'Each fault, such as `{parameter, message}`.' }),
  requestId: z.string().meta({ description: 'Quote it when asking for help. Also in the header X-Request-Id.' }),
});
