/**
 * Defines the API's query parameters. The same schemas validate the parameters in the service, describe them in the OpenAPI document, and
 * provide their types in the client. Rules that involve several parameters, such as the order and length of a window, are checked where a
 * request is parsed. Source: docs/api-contract.md.
 */
import * as z from 'zod';
import { parseTimestamp, RESOLUTIONS, START_OF_CALENDAR } from '../calendar.js';
import {
  BUILT_IN_DIMENSION_NAMES,
  BUILT_IN_RESOURCE_TYPES,
  billingDimensions,
  canonicalGroupBy,
  type EntryField,
  GROUP_BY_DIMENSIONS,
  isBillingDimension,
  isResourceType,
  MAX_GROUP_BY_DIMENSIONS,
  METRICS_DIMENSIONS,
  type MetricsDimension,
  resourceTypes,
} from '../dimensions.js';
import { isName, MAX_NAME_LENGTH } from '../event.js';
import {
  ACCOUNT_KEY_ROLES,
  DEFAULT_EVENTS_PAGE,
  DEFAULT_LIST_PAGE,
  DEFAULT_LIST_SORT,
  EVENT_SORT_KEYS,
  EVENT_SORT_ORDERS,
  type EXCLUDING_PARAMETER,
  EXTENSIBLE,
  MAX_EVENTS_BY_COST,
  MAX_EVENTS_PAGE,
  MAX_LIST_PAGE,
  MAX_METRICS_PAGE,
  MAX_PAGE_POINTS,
} from './request.js';

const ACCOUNT_SORTS = [DEFAULT_LIST_SORT, 'createdAt:asc', 'name:asc', 'name:desc'] as const;
const API_KEY_SORTS = [DEFAULT_LIST_SORT, 'createdAt:asc'] as const;

const INSTANT_RULE = 'must be RFC 3339 in UTC (Z or +00:00), in the years 0001 to 9999, such as 2025-10-01T00:00:00Z';
const LOST_PLUS = 'has a space instead of the plus of its offset; write Z, or encode the plus as %2B';
/** Matches an offset such as `+00:00` whose plus was not encoded, because a plus in a query string means a space. */
const SPACE_OFFSET = /T.* \d\d:?\d\d$/i;

/** The JSON Schema keywords of a name. Lengths are in code points, as JSON Schema counts them. */
const NAME = { minLength: 1, maxLength: MAX_NAME_LENGTH };
const NAME_RULE = `${NAME.minLength} to ${NAME.maxLength} characters without control characters`;

export const instantText = z.string().transform((text, context) => {
  const value = parseTimestamp(text);
  if (value !== undefined && value >= START_OF_CALENDAR) return value;
  context.addIssue({ code: 'custom', message: SPACE_OFFSET.test(text) ? LOST_PLUS : INSTANT_RULE });
  return z.NEVER;
});

export const nameText = z.string().refine(isName, `must be ${NAME_RULE}`).meta(NAME);

/** Returns the schema of a name that the platform may have added. Known names are read at each request, because they are added at start. */
function code(isKnown: (text: string) => boolean, known: () => readonly string[], examples: readonly string[]) {
  const error = () => `must be one of ${known().join(', ')}`;
  const schema = z.string({ error }).refine(isKnown, { error });
  return (description: string) => schema.meta({ description, examples: [...examples] });
}
const resourceTypeText = code(isResourceType, resourceTypes, BUILT_IN_RESOURCE_TYPES);
export const billingDimensionText = code(isBillingDimension, billingDimensions, BUILT_IN_DIMENSION_NAMES);

const flag = z.string().transform((text, context) => {
  if (text === 'true' || text === 'false') return text === 'true';
  context.addIssue({ code: 'custom', message: 'must be true or false' });
  return z.NEVER;
});

function groupByOf<const Dimension extends MetricsDimension>(dimensions: readonly Dimension[]) {
  const schema = z.string().transform((text, context): readonly Dimension[] => {
    const names = text.split(',');
    const known = names.flatMap((name) => dimensions.filter((dimension) => dimension === name));
    const problem = (message: string) => context.addIssue({ code: 'custom', message });
    if (known.length < names.length) problem(`must list dimensions from ${dimensions.join(', ')}`);
    if (new Set(names).size < names.length) problem('must name each dimension once');
    if (names.length > MAX_GROUP_BY_DIMENSIONS) problem(`must have at most ${MAX_GROUP_BY_DIMENSIONS} dimensions`);
    return canonicalGroupBy(known);
  });
  return schema.meta({
    // The OpenAPI document describes the parameter as a list. Its `style` declares the comma as the separator.
    type: 'array',
    items: { type: 'string', enum: dimensions },
    minItems: 1,
    maxItems: MAX_GROUP_BY_DIMENSIONS,
    uniqueItems: true,
    description:
      'Up to three dimensions in any order, separated by commas or as repeated parameters. Several dimensions return ' +
      'their cross product. Without groupBy the response has one entry.',
  });
}

export const WINDOW_PARAMETERS = {
  startTime: instantText.meta({
    format: 'date-time',
    description: 'Start of the window, inclusive. RFC 3339 in UTC, in the years 0001 to 9999.',
  }),
  endTime: instantText.meta({
    format: 'date-time',
    description: 'End of the window, exclusive. Must be after startTime.',
  }),
};

/** Filters that select usage. Repeating a filter selects any of the values, which the platform's API cannot do. Each schema is for one value. */
export const VALUE_FILTERS = {
  workspace: nameText.meta({ ...NAME, description: 'Only this workspace; account admins only.' }),
  resourceType: resourceTypeText(`Only resources of this type. ${EXTENSIBLE}`),
  resourceName: nameText.meta({ ...NAME, description: 'Only resources of this name.' }),
  resourceUuid: nameText.meta({
    ...NAME,
    description:
      'Only this instance. Best effort: not every resource type has UUIDs. Select usage without a UUID with ' +
      '`withoutResourceUuid`.',
  }),
  billingDimension: billingDimensionText(`Only this billing dimension. ${EXTENSIBLE}`),
};

const EXCLUSION = 'Takes precedence over all other filters.';

/** Filters that exclude usage. A filter may be repeated to exclude several values. */
export const EXCLUDING_FILTERS = {
  excludeWorkspace: nameText.meta({ ...NAME, description: `Not this workspace; account admins only. ${EXCLUSION}` }),
  excludeResourceType: resourceTypeText(`No resources of this type. ${EXCLUSION}`),
  excludeResourceName: nameText.meta({ ...NAME, description: `No resources of this name. ${EXCLUSION}` }),
  excludeResourceUuid: nameText.meta({
    ...NAME,
    description: `Not this instance. Usage without a resource UUID stays, unless \`excludeWithoutResourceUuid\` is true. ${EXCLUSION}`,
  }),
  excludeBillingDimension: billingDimensionText(`Not this billing dimension. ${EXCLUSION}`),
} satisfies Record<(typeof EXCLUDING_PARAMETER)[EntryField], z.ZodType>;

export const ACCOUNT_FILTERS = {
  account: nameText.meta({ ...NAME, description: 'Only this account, which must be one of yours.' }),
  excludeAccount: nameText.meta({
    ...NAME,
    description: `Not this account, which must be one of yours. ${EXCLUSION}`,
  }),
};

export const FILTER_PARAMETERS = {
  ...VALUE_FILTERS,
  withoutResourceUuid: flag.meta({
    type: 'boolean',
    default: false,
    description:
      'Only usage without a resource UUID; together with `resourceUuid`, also those instances. A separate parameter, so ' +
      'that an empty variable in `resourceUuid` does not select it by accident.',
  }),
  ...EXCLUDING_FILTERS,
  excludeWithoutResourceUuid: flag.meta({
    type: 'boolean',
    default: false,
    description: `No usage without a resource UUID. ${EXCLUSION}`,
  }),
};

export const RESOURCE_TYPES_PARAMETERS = { ...WINDOW_PARAMETERS, ...FILTER_PARAMETERS };

export const METRICS_PARAMETERS = {
  ...WINDOW_PARAMETERS,
  resolution: oneOf(RESOLUTIONS).meta({
    description:
      'The length of a bucket (default: by the length of the window: under 7 days hourly, under 90 days daily, under a year ' +
      'weekly, otherwise monthly). Maximum window: 7 days for hourly, 90 days for daily, 1 year for weekly.',
  }),
  groupBy: groupByOf(GROUP_BY_DIMENSIONS),
  ...FILTER_PARAMETERS,
  limit: pageSize(MAX_METRICS_PAGE).meta({
    description:
      `Groups per page. Larger values mean ${MAX_METRICS_PAGE}. A page has at most ${MAX_PAGE_POINTS} points (groups times ` +
      `buckets): with more than ${MAX_PAGE_POINTS / MAX_METRICS_PAGE} buckets a page has fewer groups, and a window of ` +
      `more than ${MAX_PAGE_POINTS} buckets is rejected.`,
    default: MAX_METRICS_PAGE,
  }),
  cursor: z.string().meta({
    description:
      '`meta.nextCursor` of the previous page. Send the same parameters (`limit` may change), as a caller of the same ' +
      'account and role, within 24 hours. Default: the first page.',
  }),
};

export const ACCOUNTS_METRICS_PARAMETERS = {
  ...METRICS_PARAMETERS,
  ...ACCOUNT_FILTERS,
  groupBy: groupByOf(METRICS_DIMENSIONS),
};

export const EVENTS_PARAMETERS = {
  ...WINDOW_PARAMETERS,
  ...FILTER_PARAMETERS,
  includeVoided: flag.meta({
    type: 'boolean',
    default: false,
    description: 'Include events whose newest revision is a void. They do not count.',
  }),
  orderBy: oneOf(EVENT_SORT_KEYS).meta({
    default: EVENT_SORT_KEYS[0],
    description:
      'The order of the list: by the UTC hour of the timestamp, then by event ID; or by cost, then by hour and event ID. By cost, the ' +
      `account may have at most ${MAX_EVENTS_BY_COST} stored revisions of events in the hours of the window, before filters, and an event ` +
      'whose cost changes between two requests may be on both pages or on none.',
  }),
  order: oneOf(EVENT_SORT_ORDERS).meta({ default: EVENT_SORT_ORDERS[0], description: 'Ascending or descending.' }),
  limit: pageSize(MAX_EVENTS_PAGE).meta({
    description:
      `Events per page. Larger values mean ${MAX_EVENTS_PAGE}. A page by timestamp examines at most a quarter of a million stored revisions, and any ` +
      'page is at most a few megabytes, so it may have fewer events, even none; there are more pages as long as `hasMore` is true.',
    default: DEFAULT_EVENTS_PAGE,
  }),
  cursor: z.string().meta({
    description:
      '`meta.nextCursor` of the previous page. Send the same parameters (`limit` may change) within 24 hours. Default: the ' +
      'first page.',
  }),
};

export const ACCOUNT_LIST_PARAMETERS = listParameters('Accounts', ACCOUNT_SORTS);
export const API_KEY_LIST_PARAMETERS = listParameters('Keys', API_KEY_SORTS);
export const SERVICE_ACCOUNT_KEY_LIST_PARAMETERS = {
  ...API_KEY_LIST_PARAMETERS,
  account: nameText.meta({
    ...NAME,
    description: 'Only keys of this account. You must be allowed to manage its keys. Required for a provisioner.',
  }),
};
export const ALERT_LIST_PARAMETERS = listParameters('Alerts', ACCOUNT_SORTS);
export const VIEW_LIST_PARAMETERS = listParameters('Views', ACCOUNT_SORTS);
export const DELIVERY_LIST_PARAMETERS = listParameters('Deliveries', API_KEY_SORTS);

export const newApiKeySchema = z.strictObject({
  role: z.enum(ACCOUNT_KEY_ROLES, { error: ({ input }) => newKeyRoleRule(input) }).meta({
    description:
      'An admin may group and filter by workspace and manage keys. A member sees the account as a whole. An emitter may ' +
      'only send events.',
  }),
  account: nameText.optional().meta({
    description:
      'An account that you are an admin of. Required for admins of several accounts, and for a provisioner, who may name any account.',
  }),
  expiresAt: instantText.optional().meta({
    format: 'date-time',
    description: 'Expiration time of the key: RFC 3339 in UTC, in the future (default: the key does not expire).',
  }),
});

export const accountSettingsSchema = z.strictObject({
  name: nameText.meta({ description: 'The display name of the account.' }),
});

/** Parameters that may be repeated. The values of groupBy may also be separated by commas. */
export const REPEATABLE_PARAMETERS: readonly string[] = [
  'groupBy',
  ...Object.keys(VALUE_FILTERS),
  ...Object.keys(EXCLUDING_FILTERS),
  ...Object.keys(ACCOUNT_FILTERS),
];

function newKeyRoleRule(role: unknown): string {
  const rule = `must be one of ${ACCOUNT_KEY_ROLES.join(', ')}`;
  const isOfPlatform = role === 'operator' || role === 'provisioner';
  return isOfPlatform ? `${rule}; create keys for all accounts with the command line, with access to Redis` : rule;
}

export function oneOf<const Values extends readonly [string, ...string[]] | readonly string[]>(values: Values) {
  return z.enum(values, { error: `must be one of ${values.join(', ')}` });
}

/** Returns the parameters of a list in the management API. Source: docs/api-contract.md, "Pages". */
function listParameters<const Sorts extends readonly [string, ...string[]]>(what: string, sorts: Sorts) {
  return {
    limit: pageSize(MAX_LIST_PAGE).meta({
      description: `${what} per page. Larger values mean ${MAX_LIST_PAGE}. Since version 2026-04-28.`,
      default: DEFAULT_LIST_PAGE,
    }),
    cursor: z.string().meta({
      description: '`meta.nextCursor` of the previous page, valid for 24 hours. Since version 2026-04-28.',
    }),
    sort: oneOf(sorts).meta({
      description: 'The order of the list. Since version 2026-04-28.',
      default: DEFAULT_LIST_SORT,
    }),
  };
}

/** Returns the schema of `limit`. Values above the maximum mean the maximum. Source: docs/api-contract.md, "Pages". */
function pageSize(maximum: number) {
  const rule = `must be a whole number of at least 1, in digits; values above ${maximum} mean ${maximum}`;
  return z
    .string()
    .refine((text) => /^\d+$/.test(text), { error: rule, abort: true })
    .transform((digits) => Math.min(Number(digits), maximum))
    .refine((limit) => limit >= 1, rule)
    .meta({ type: 'integer', minimum: 1 });
}
