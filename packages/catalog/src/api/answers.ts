/**
 * The answers of the API, as a reader that keeps every digit meets them (see exact-json.ts): numbers are decimal text.
 * Members that a later service adds are passed over. Source: the API specification, sections "Billing API" and "Errors".
 */
import * as z from 'zod';
import { type DecimalText, isDecimalText } from '../decimal.js';
import { BILLING_DIMENSIONS, RESOURCE_TYPES } from '../dimensions.js';
import { GROUP_BY_DIMENSIONS } from '../group-by.js';
import { RESOLUTIONS } from '../resolution.js';
import { ROLES } from '../role.js';

/** On the wire a JSON number in its shortest exact form, never with an exponent. */
const amount = z.custom<DecimalText>((value) => typeof value === 'string' && isDecimalText(value), 'must be a decimal');

const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number')
  .transform(Number);

export const metricsPointSchema = z.object({
  timestamp: z.string(),
  cost: amount,
  usage: amount.optional(),
});
/** One bucket of a series. */
export type MetricsPoint = z.output<typeof metricsPointSchema>;

export const metricsEntrySchema = z.object({
  workspace: z.string().optional(),
  resourceType: z.enum(RESOURCE_TYPES).optional(),
  resourceName: z.string().optional(),
  resourceUuid: z.string().optional(),
  billingDimension: z.enum(BILLING_DIMENSIONS).optional(),
  summary: z.object({ cost: amount, usage: amount.optional() }),
  timeseries: z.array(metricsPointSchema),
});
/** One group, with its series over the whole window. */
export type MetricsEntry = z.output<typeof metricsEntrySchema>;

export const metricsAnswerSchema = z.object({
  startTime: z.string(),
  endTime: z.string(),
  resolution: z.enum(RESOLUTIONS),
  summary: z.object({ totalCost: amount, totalUsage: amount.optional() }),
  data: z.array(metricsEntrySchema),
  meta: z.object({ hasMore: z.boolean(), nextCursor: z.string() }),
});
/** A page of GET …/metrics. */
export type MetricsAnswer = z.output<typeof metricsAnswerSchema>;

export const groupByEnumSchema = z.object({ values: z.array(z.enum(GROUP_BY_DIMENSIONS)) });
export const resourceTypesEnumSchema = z.object({ values: z.array(z.enum(RESOURCE_TYPES)) });

export const accountSchema = z.object({
  id: z.string(),
  name: z.string(),
  role: z.enum(ROLES),
  createdAt: z.string(),
});
/** An account that the caller belongs to. */
export type AccountAnswer = z.output<typeof accountSchema>;

/** GET /v0/accounts before lists were paginated. */
export const accountArraySchema = z.array(accountSchema);
/** GET /v0/accounts since then. */
export const accountPageSchema = z.object({
  data: z.array(accountSchema),
  meta: z.object({ hasMore: z.boolean(), nextCursor: z.string(), total: wholeNumber }),
});

export const errorAnswerSchema = z.object({
  /** The HTTP status. */
  code: wholeNumber,
  /** A stable word to branch on. */
  error: z.string(),
  /** How to mend the request. */
  message: z.string(),
  details: z.array(z.record(z.string(), z.string())).optional(),
  requestId: z.string(),
});
export type ErrorAnswer = z.output<typeof errorAnswerSchema>;
