/**
 * The API's parameters as they are written in a query string. The same schemas check them in the service, describe them in
 * its OpenAPI document and type them in the client. Rules between parameters (a window's order and length) are checked
 * where a request is parsed. Source: the API specification, sections "Billing API" and "Limits", and DESIGN section 6.
 */
import * as z from 'zod';
import { parseTimestamp, RESOLUTIONS, START_OF_CALENDAR } from '../calendar.js';
import {
  BILLING_DIMENSIONS,
  canonicalGroupBy,
  type EntryField,
  GROUP_BY_DIMENSIONS,
  MAX_GROUP_BY_DIMENSIONS,
  METRICS_DIMENSIONS,
  type MetricsDimension,
  RESOURCE_TYPES,
} from '../dimensions.js';
import { isName, MAX_NAME_LENGTH } from '../event.js';
import {
  ACCOUNT_KEY_ROLES,
  DEFAULT_EVENTS_PAGE,
  DEFAULT_LIST_PAGE,
  DEFAULT_LIST_SORT,
  type EXCLUDING_PARAMETER,
  MAX_EVENTS_PAGE,
  MAX_LIST_PAGE,
  MAX_METRICS_PAGE,
  MAX_PAGE_POINTS,
} from './request.js';

const ACCOUNT_SORTS = [DEFAULT_LIST_SORT, 'createdAt:asc', 'name:asc', 'name:desc'] as const;
const API_KEY_SORTS = [DEFAULT_LIST_SORT, 'createdAt:asc'] as const;

const INSTANT_RULE = 'must be RFC 3339 in UTC (Z or +00:00), of the years 0001 to 9999, such as 2025-10-01T00:00:00Z';
const LOST_PLUS = 'has a space where its offset had a plus; write Z, or encode the plus as %2B';
/** In a query string a bare plus means a space. */
const SPACE_OFFSET = /T.* \d\d:?\d\d$/i;

/** A name in the document. Lengths count code points, as in JSON Schema. */
const NAME = { minLength: 1, maxLength: MAX_NAME_LENGTH };
const NAME_RULE = `${NAME.minLength} to ${NAME.maxLength} characters without control characters`;

/** RFC 3339 in UTC, read as epoch milliseconds. */
export const instantText = z.string().transform((text, context) => {
  const value = parseTimestamp(text);
  if (value !== undefined && value >= START_OF_CALENDAR) return value;
  context.addIssue({ code: 'custom', message: SPACE_OFFSET.test(text) ? LOST_PLUS : INSTANT_RULE });
  return z.NEVER;
});

/** A name that a caller has chosen. */
export const nameText = z.string().refine(isName, `must be ${NAME_RULE}`).meta(NAME);
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
    if (known.length < names.length) problem(`must list dimensions out of ${dimensions.join(', ')}`);
    if (new Set(names).size < names.length) problem('must name each dimension once');
    if (names.length > MAX_GROUP_BY_DIMENSIONS) problem(`must have at most ${MAX_GROUP_BY_DIMENSIONS} dimensions`);
    return canonicalGroupBy(known);
  });
  return schema.meta({
    // The document describes the list; its `style` says that commas separate the names.
    type: 'array',
    items: { type: 'string', enum: dimensions },
    minItems: 1,
    maxItems: MAX_GROUP_BY_DIMENSIONS,
    uniqueItems: true,
    description:
      'Up to three dimensions, in any order, with commas between them or each in a parameter of its own. Several give ' +
      'their cross product. Left out, there is one entry.',
  });
}

export const WINDOW_PARAMETERS = {
  startTime: instantText.meta({
    format: 'date-time',
    description: 'Where the window begins; inclusive. RFC 3339 in UTC, of the years 0001 to 9999.',
  }),
  endTime: instantText.meta({
    format: 'date-time',
    description: 'Where the window ends; exclusive, and after startTime.',
  }),
};

/**
 * What usage must have to be counted. Each may be given several times: one of its values is enough (an extension, as are
 * the other filters). The schemas are those of one value.
 */
export const VALUE_FILTERS = {
  workspace: nameText.meta({ ...NAME, description: 'Only this workspace; account admins only.' }),
  resourceType: oneOf(RESOURCE_TYPES).meta({ description: 'Only resources of this type.' }),
  resourceName: nameText.meta({ ...NAME, description: 'Only resources of this name.' }),
  resourceUuid: nameText.meta({
    ...NAME,
    description:
      'Only this instance. Best effort: not every type of resource has one. What has none is selected by ' +
      '`withoutResourceUuid`.',
  }),
  billingDimension: oneOf(BILLING_DIMENSIONS).meta({
    description: 'Only this billing dimension.',
  }),
};

const EXCLUSION = 'Combines with all other filters: what is excluded is left out, whatever else selects it.';

/** What usage must not have to be counted. Each may be given several times: none of its values may be there. */
export const EXCLUDING_FILTERS = {
  excludeWorkspace: nameText.meta({ ...NAME, description: `Not this workspace; account admins only. ${EXCLUSION}` }),
  excludeResourceType: oneOf(RESOURCE_TYPES).meta({ description: `No resources of this type. ${EXCLUSION}` }),
  excludeResourceName: nameText.meta({ ...NAME, description: `No resources of this name. ${EXCLUSION}` }),
  excludeResourceUuid: nameText.meta({
    ...NAME,
    description: `Not this instance. What has no resource UUID stays, unless \`excludeWithoutResourceUuid\`. ${EXCLUSION}`,
  }),
  excludeBillingDimension: oneOf(BILLING_DIMENSIONS).meta({
    description: `Not this billing dimension. ${EXCLUSION}`,
  }),
} satisfies Record<(typeof EXCLUDING_PARAMETER)[EntryField], z.ZodType>;

/** The filters of queries about several accounts. */
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
      'Only what has no resource UUID; together with `resourceUuid`, that or one of those instances. Named so that nobody ' +
      'asks for it by accident, as with an empty variable.',
  }),
  ...EXCLUDING_FILTERS,
  excludeWithoutResourceUuid: flag.meta({
    type: 'boolean',
    default: false,
    description: `Nothing that has no resource UUID. ${EXCLUSION}`,
  }),
};

export const RESOURCE_TYPES_PARAMETERS = { ...WINDOW_PARAMETERS, ...FILTER_PARAMETERS };

export const METRICS_PARAMETERS = {
  ...WINDOW_PARAMETERS,
  resolution: oneOf(RESOLUTIONS).meta({
    description:
      'The length of a bucket. Left out, it follows from the window: under 7 days hourly, under 90 days daily, under a year ' +
      'weekly, else monthly. Asked for, hourly allows a window of up to 7 days, daily 90 days, weekly 1 year.',
  }),
  groupBy: groupByOf(GROUP_BY_DIMENSIONS),
  ...FILTER_PARAMETERS,
  limit: pageSize(MAX_METRICS_PAGE).meta({
    description:
      `Groups on a page. Larger values mean ${MAX_METRICS_PAGE}. A page has at most ${MAX_PAGE_POINTS} points (groups times ` +
      `buckets): a window of more than ${MAX_PAGE_POINTS / MAX_METRICS_PAGE} buckets has fewer groups on a page, and one of ` +
      `more than ${MAX_PAGE_POINTS} buckets is refused.`,
    default: MAX_METRICS_PAGE,
  }),
  cursor: z.string().meta({
    description:
      '`meta.nextCursor` of the page before, with the same parameters (`limit` may change), by a caller of the same account ' +
      'and role, within 24 hours. Empty or left out: the first page.',
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
    description: 'Also events whose newest revision is a void. They do not count.',
  }),
  limit: pageSize(MAX_EVENTS_PAGE).meta({
    description:
      `Events on a page. Larger values mean ${MAX_EVENTS_PAGE}. A page looks through a quarter of a million events and has a few megabytes at ` +
      'most, so it may have fewer, also none; there are more pages as long as `hasMore` is true.',
    default: DEFAULT_EVENTS_PAGE,
  }),
  cursor: z.string().meta({
    description:
      '`meta.nextCursor` of the page before, with the same parameters (`limit` may change), within 24 hours. Empty or left ' +
      'out: the first page.',
  }),
};

export const ACCOUNT_LIST_PARAMETERS = listParameters('Accounts', ACCOUNT_SORTS);
export const API_KEY_LIST_PARAMETERS = listParameters('Keys', API_KEY_SORTS);
export const SERVICE_ACCOUNT_KEY_LIST_PARAMETERS = {
  ...API_KEY_LIST_PARAMETERS,
  account: nameText.meta({
    ...NAME,
    description: 'Only keys of this account, whose keys you must be allowed to manage. A provisioner must name one.',
  }),
};
export const ALERT_LIST_PARAMETERS = listParameters('Alerts', ACCOUNT_SORTS);
export const DELIVERY_LIST_PARAMETERS = listParameters('Deliveries', API_KEY_SORTS);

/** The body of a request: a new API key. */
export const newApiKeySchema = z.strictObject({
  role: z.enum(ACCOUNT_KEY_ROLES, { error: ({ input }) => newKeyRoleRule(input) }).meta({
    description:
      'An admin may group and filter by workspace, and manage keys; a member sees the account as a whole; an emitter may ' +
      'send events and read nothing.',
  }),
  account: nameText.optional().meta({
    description:
      'An account that you are an admin of. Needed by those who are an admin of several, and by a provisioner, for whom it is any account.',
  }),
  expiresAt: instantText.optional().meta({
    format: 'date-time',
    description: 'When the key stops to be valid: RFC 3339 in UTC, in the future. Left out: it does not expire.',
  }),
});

/** The body of a request: the name of an account. */
export const accountSettingsSchema = z.strictObject({
  name: nameText.meta({ description: 'What the platform calls the account.' }),
});

/** The parameters that may be given several times. Of groupBy the names may also be in one, with commas between. */
export const REPEATABLE_PARAMETERS: readonly string[] = [
  'groupBy',
  ...Object.keys(VALUE_FILTERS),
  ...Object.keys(EXCLUDING_FILTERS),
  ...Object.keys(ACCOUNT_FILTERS),
];

function newKeyRoleRule(role: unknown): string {
  const rule = `must be one of ${ACCOUNT_KEY_ROLES.join(', ')}`;
  const isOfPlatform = role === 'operator' || role === 'provisioner';
  return isOfPlatform ? `${rule}; keys for all accounts are created with the command line, with access to Redis` : rule;
}

/** A closed list of words. */
export function oneOf<const Values extends readonly [string, ...string[]] | readonly string[]>(values: Values) {
  return z.enum(values, { error: `must be one of ${values.join(', ')}` });
}

/** The parameters of a list in the management API. Source: the API specification, section "Limits". */
function listParameters<const Sorts extends readonly [string, ...string[]]>(what: string, sorts: Sorts) {
  return {
    limit: pageSize(MAX_LIST_PAGE).meta({
      description: `${what} on a page. Larger values mean ${MAX_LIST_PAGE}. Since version 2026-04-28.`,
      default: DEFAULT_LIST_PAGE,
    }),
    cursor: z.string().meta({
      description: '`meta.nextCursor` of the page before, within 24 hours. Since version 2026-04-28.',
    }),
    sort: oneOf(sorts).meta({
      description: 'The order of the list. Since version 2026-04-28.',
      default: DEFAULT_LIST_SORT,
    }),
  };
}

/** `limit`: decimal digits, at least 1; a larger value means the maximum. Source: the API specification, "Limits". */
function pageSize(maximum: number) {
  const rule = `must be a whole number from 1 on, in digits; above ${maximum} it means ${maximum}`;
  return z
    .string()
    .refine((text) => /^\d+$/.test(text), { error: rule, abort: true })
    .transform((digits) => Math.min(Number(digits), maximum))
    .refine((limit) => limit >= 1, rule)
    .meta({ type: 'integer', minimum: 1 });
}
