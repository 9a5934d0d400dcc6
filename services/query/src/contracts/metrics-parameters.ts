/** The parameters of GET …/metrics. Source: the API specification, section "Billing API", and DESIGN section 6. */
import {
  BILLING_DIMENSIONS,
  canonicalGroupBy,
  defaultResolution,
  exceededCap,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  isGroupByDimension,
  isName,
  MAX_GROUP_BY_DIMENSIONS,
  MAX_NAME_LENGTH,
  RESOLUTIONS,
  RESOURCE_TYPES,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import { z } from 'zod';
import { pageSize } from './page-size.js';
import { type ParameterRules, QueryParameters } from './query-parameters.js';
import { readWindow } from './window.js';

export const MAX_METRICS_PAGE = 100;

export interface MetricsRequest {
  readonly window: Window;
  readonly resolution: Resolution;
  /** In canonical order; empty for the aggregate of everything. */
  readonly groupBy: readonly GroupByDimension[];
  readonly filters: Readonly<Partial<Record<GroupByDimension, string>>>;
  /** Groups on a page: 1 to {@link MAX_METRICS_PAGE}. */
  readonly limit: number;
  /** Empty for the first page. */
  readonly cursor: string;
}

const INSTEAD = 'filter with workspace, resourceType, resourceName, resourceUuid or billingDimension';

const RULES = {
  names: [
    'startTime',
    'endTime',
    'resolution',
    'groupBy',
    'workspace',
    'resourceType',
    'resourceName',
    'resourceUuid',
    'billingDimension',
    'limit',
    'cursor',
  ],
  mayBeEmpty: ['resourceUuid', 'cursor'],
  unsupported: {
    label: INSTEAD,
    unit: `each billing dimension has one unit; ${INSTEAD}`,
  },
} as const satisfies ParameterRules;

const name = z.string().refine(isName, `must be 1 to ${MAX_NAME_LENGTH} characters without control characters`);
const nameOrNothing = z.union([z.literal(''), name], {
  error: `must be empty or 1 to ${MAX_NAME_LENGTH} characters without control characters`,
});

const groupBy = z.string().transform((text, context) => {
  const names = text.split(',');
  const known = names.filter(isGroupByDimension);
  const fault = (message: string) => context.addIssue({ code: 'custom', message });
  if (known.length < names.length) fault(`must list dimensions out of ${GROUP_BY_DIMENSIONS.join(', ')}`);
  if (new Set(names).size < names.length) fault('must name each dimension once');
  if (names.length > MAX_GROUP_BY_DIMENSIONS) fault(`must have at most ${MAX_GROUP_BY_DIMENSIONS} dimensions`);
  return canonicalGroupBy(known);
});

/** @throws ApiError `invalid_parameter` with every fault */
export function parseMetricsRequest(rawQuery: string): MetricsRequest {
  const parameters = new QueryParameters(rawQuery, RULES);
  const window = readWindow(parameters);
  const resolution = readResolution(parameters, window);
  const grouping = parameters.optional('groupBy', groupBy) ?? [];
  const filters = {
    workspace: parameters.optional('workspace', name),
    resource_type: parameters.optional('resourceType', oneOf(RESOURCE_TYPES)),
    resource_name: parameters.optional('resourceName', name),
    resource_uuid: parameters.optional('resourceUuid', nameOrNothing),
    billing_dimension: parameters.optional('billingDimension', oneOf(BILLING_DIMENSIONS)),
  };
  const limit = parameters.optional('limit', pageSize(MAX_METRICS_PAGE)) ?? MAX_METRICS_PAGE;
  const cursor = parameters.optional('cursor', z.string()) ?? '';
  if (!window || !resolution || !parameters.areValid) throw parameters.refusal();
  return { window, resolution, groupBy: grouping, filters: given(filters), limit, cursor };
}

/** Whether the request names workspaces one by one, which only an account's admins may do. */
export function readsWorkspaces({ groupBy, filters }: MetricsRequest): boolean {
  return groupBy.includes('workspace') || filters.workspace !== undefined;
}

function readResolution(parameters: QueryParameters, window: Window | undefined): Resolution | undefined {
  const asked = parameters.optional('resolution', oneOf(RESOLUTIONS));
  if (!window) return undefined;
  const cap = asked && exceededCap(asked, window);
  if (cap) {
    parameters.fault(
      'resolution',
      `resolution ${asked} allows a window of at most ${cap}; shorten the window or use a coarser resolution.`,
    );
  }
  return asked ?? defaultResolution(window);
}

function oneOf<Values extends readonly [string, ...string[]] | readonly string[]>(values: Values) {
  return z.enum(values, { error: `must be one of ${values.join(', ')}` });
}

function given(filters: Partial<Record<GroupByDimension, string | undefined>>): MetricsRequest['filters'] {
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));
}
