/**
 * The API's parameters as they are written in a query string. The same schemas check them in the service, describe them in
 * its OpenAPI document and type them in the client. Rules between parameters (a window's order and length) are checked
 * where a request is parsed. Source: the API specification, sections "Billing API" and "Limits", and DESIGN section 6.
 */
import * as z from 'zod';
import { RESOLUTIONS } from '../calendar.js';
import { BILLING_DIMENSIONS, RESOURCE_TYPES } from '../dimensions.js';
import { isName, MAX_NAME_LENGTH } from '../event-schema.js';
import {
  canonicalGroupBy,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  isGroupByDimension,
  MAX_GROUP_BY_DIMENSIONS,
} from '../group-by.js';
import { END_OF_TIME, parseTimestamp } from '../timestamp.js';

export const MAX_METRICS_PAGE = 100;
export const DEFAULT_ACCOUNT_PAGE = 50;
const MAX_ACCOUNT_PAGE = 200;

export const ACCOUNT_SORTS = ['createdAt:desc', 'createdAt:asc', 'name:asc', 'name:desc'] as const;
export type AccountSort = (typeof ACCOUNT_SORTS)[number];

const INSTANT_RULE = 'must be RFC 3339 in UTC (Z or +00:00), from 1970 through 2100, such as 2025-10-01T00:00:00Z';
const LOST_PLUS = 'has a space where its offset had a plus; write Z, or encode the plus as %2B';
/** In a query string a bare plus means a space. */
const SPACE_OFFSET = / \d\d:?\d\d$/;

/** A name in the document. Lengths count code points, as in JSON Schema. */
const NAME = { minLength: 1, maxLength: MAX_NAME_LENGTH };
const NAME_RULE = `${NAME.minLength} to ${NAME.maxLength} characters without control characters`;

const instant = z.string().transform((text, context) => {
  const value = parseTimestamp(text);
  if (value !== undefined && value >= 0 && value < END_OF_TIME) return value;
  context.addIssue({ code: 'custom', message: SPACE_OFFSET.test(text) ? LOST_PLUS : INSTANT_RULE });
  return z.NEVER;
});

const name = z.string().refine(isName, `must be ${NAME_RULE}`);
const nameOrNothing = z.string().refine((text) => text === '' || isName(text), `must be empty or ${NAME_RULE}`);

const groupBy = z.string().transform((text, context): readonly GroupByDimension[] => {
  const names = text.split(',');
  const known = names.filter(isGroupByDimension);
  const fault = (message: string) => context.addIssue({ code: 'custom', message });
  if (known.length < names.length) fault(`must list dimensions out of ${GROUP_BY_DIMENSIONS.join(', ')}`);
  if (new Set(names).size < names.length) fault('must name each dimension once');
  if (names.length > MAX_GROUP_BY_DIMENSIONS) fault(`must have at most ${MAX_GROUP_BY_DIMENSIONS} dimensions`);
  return canonicalGroupBy(known);
});

export const WINDOW_PARAMETERS = {
  startTime: instant.meta({
    format: 'date-time',
    description: 'Where the window begins; inclusive. RFC 3339 in UTC, from 1970 through 2100.',
  }),
  endTime: instant.meta({
    format: 'date-time',
    description: 'Where the window ends; exclusive, and after startTime.',
  }),
};

export const METRICS_PARAMETERS = {
  ...WINDOW_PARAMETERS,
  resolution: oneOf(RESOLUTIONS).meta({
    description:
      'The length of a bucket. Left out, it follows from the window: under 7 days hourly, under 90 days daily, under a year ' +
      'weekly, else monthly. Asked for, hourly allows a window of up to 7 days, daily 90 days, weekly 1 year.',
  }),
  groupBy: groupBy.meta({
    // The document describes the list; its `style` says that commas separate the names.
    type: 'array',
    items: { type: 'string', enum: GROUP_BY_DIMENSIONS },
    minItems: 1,
    maxItems: MAX_GROUP_BY_DIMENSIONS,
    uniqueItems: true,
    description:
      'Up to three dimensions, in any order. Several give their cross product. Left out, there is one entry.',
  }),
  workspace: name.meta({ ...NAME, description: 'Only this workspace; account admins only.' }),
  resourceType: oneOf(RESOURCE_TYPES).meta({ description: 'Only resources of this type.' }),
  resourceName: name.meta({ ...NAME, description: 'Only resources of this name.' }),
  resourceUuid: nameOrNothing.meta({
    maxLength: MAX_NAME_LENGTH,
    description: 'Only this instance; empty selects what has none. Best effort: not every type of resource has one.',
  }),
  billingDimension: oneOf(BILLING_DIMENSIONS).meta({
    description: 'Only this billing dimension.',
  }),
  limit: pageSize(MAX_METRICS_PAGE).meta({
    description: `Groups on a page. Larger values mean ${MAX_METRICS_PAGE}.`,
    default: MAX_METRICS_PAGE,
  }),
  cursor: z.string().meta({
    description:
      '`meta.nextCursor` of the page before, with the same parameters (`limit` may change) and the same caller, within 24 ' +
      'hours. Empty or left out: the first page.',
  }),
};

export const ACCOUNT_LIST_PARAMETERS = {
  limit: pageSize(MAX_ACCOUNT_PAGE).meta({
    description: `Accounts on a page. Larger values mean ${MAX_ACCOUNT_PAGE}. Since version 2026-04-28.`,
    default: DEFAULT_ACCOUNT_PAGE,
  }),
  cursor: z.string().meta({
    description: '`meta.nextCursor` of the page before, within 24 hours. Since version 2026-04-28.',
  }),
  sort: oneOf(ACCOUNT_SORTS).meta({
    description: 'The order of the list. Since version 2026-04-28.',
    default: ACCOUNT_SORTS[0],
  }),
};

/** RFC 3339 in UTC, or the same as a Date. */
export type Instant = string | Date;

/** Half-open: startTime is inside, endTime is not. */
export type WindowQuery = { readonly [Name in keyof typeof WINDOW_PARAMETERS]: Instant };

type MetricsParameters = Omit<typeof METRICS_PARAMETERS, keyof WindowQuery>;

/** Members that are left out or undefined are not sent. */
export type MetricsQuery = WindowQuery & {
  readonly [Name in keyof MetricsParameters]?: z.output<MetricsParameters[Name]> | undefined;
};

function oneOf<const Values extends readonly [string, ...string[]] | readonly string[]>(values: Values) {
  return z.enum(values, { error: `must be one of ${values.join(', ')}` });
}

/** `limit`: decimal digits, at least 1; a larger value means the maximum. Source: the API specification, "Limits". */
function pageSize(maximum: number) {
  const rule = `must be a whole number from 1 to ${maximum}, in digits`;
  return z
    .string()
    .refine((text) => /^\d+$/.test(text), { error: rule, abort: true })
    .transform((digits) => Math.min(Number(digits), maximum))
    .refine((limit) => limit >= 1, rule)
    .meta({ type: 'integer', minimum: 1 });
}
