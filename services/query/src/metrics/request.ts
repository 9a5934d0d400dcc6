/** Parses the query string of GET …/metrics. Source: docs/api-contract.md. */
import { type ParameterRules, QueryParameters } from '@meterline/api/http/query-parameters';
import {
  ACCOUNT_FILTERS,
  type ACCOUNTS_METRICS_PARAMETERS,
  bucketCount,
  defaultResolution,
  ENTRY_FIELD,
  EXCLUDING_PARAMETER,
  exceededCap,
  FILTER_PARAMETERS,
  MAX_FILTER_VALUES,
  MAX_METRICS_PAGE,
  MAX_PAGE_POINTS,
  METRICS_DIMENSIONS,
  METRICS_PARAMETERS,
  type MetricsField,
  REPEATABLE_PARAMETERS,
  RESOURCE_TYPES_PARAMETERS,
  type Resolution,
  WINDOW_PARAMETERS,
  type Window,
} from '@meterline/catalog';
import type { DimensionValues, MetricsQuery, Selection } from '@meterline/warehouse';

type FilterValues = Required<Pick<Selection, 'filters' | 'excluded'>>;

/** A metrics query as the caller sent it. The service adds the accounts, and the rollup rows (precomputed totals) that it may read. */
export interface MetricsRequest
  extends FilterValues,
    Omit<MetricsQuery, 'accounts' | 'rollups' | 'hidesWorkspace' | keyof FilterValues> {
  readonly cursor: string;
}

const INSTEAD = 'filter with workspace, resourceType, resourceName, resourceUuid or billingDimension';

const RULES = {
  mayBeEmpty: ['cursor'],
  mayRepeat: REPEATABLE_PARAMETERS,
  unsupported: {
    label: INSTEAD,
    unit: `each billing dimension has one unit; ${INSTEAD}`,
  },
} as const satisfies Omit<ParameterRules, 'names'>;

/**
 * @param schemas the parameters of a query about one account, or about several accounts
 * @returns the request. `limit` is reduced so that a page has at most `MAX_PAGE_POINTS` points (groups times buckets).
 * @throws ApiError `invalid_parameter` with every error
 */
export function parseMetricsRequest(
  rawQuery: string,
  schemas: typeof METRICS_PARAMETERS | typeof ACCOUNTS_METRICS_PARAMETERS = METRICS_PARAMETERS,
): MetricsRequest {
  const parameters = new QueryParameters(rawQuery, { ...RULES, names: Object.keys(schemas) });
  const window = readWindow(parameters);
  const resolution = readResolution(parameters, window);
  const groupBy = parameters.joined('groupBy', schemas.groupBy) ?? [];
  const selected = readFilters(parameters);
  const limit = parameters.optional('limit', METRICS_PARAMETERS.limit) ?? MAX_METRICS_PAGE;
  const cursor = parameters.optional('cursor', METRICS_PARAMETERS.cursor) ?? '';
  if (!window || !resolution || !parameters.areValid) throw parameters.error();
  const mostGroups = Math.floor(MAX_PAGE_POINTS / bucketCount(window, resolution));
  return { window, resolution, groupBy, ...selected, limit: Math.min(limit, mostGroups), cursor };
}

/** Returns true if the request groups or filters by workspace, which only admins may do. */
export function readsWorkspaces({
  groupBy = [],
  filters,
  excluded,
}: FilterValues & Partial<Pick<MetricsRequest, 'groupBy'>>): boolean {
  return groupBy.includes('workspace') || filters.workspace !== undefined || excluded.workspace !== undefined;
}

/** @throws ApiError `invalid_parameter` with every error */
export function parseResourceTypesRequest(rawQuery: string): FilterValues & Pick<Selection, 'window'> {
  const parameters = new QueryParameters(rawQuery, {
    names: Object.keys(RESOURCE_TYPES_PARAMETERS),
    mayRepeat: REPEATABLE_PARAMETERS,
  });
  const window = readWindow(parameters);
  const selected = readFilters(parameters);
  if (!window || !parameters.areValid) throw parameters.error();
  return { window, ...selected };
}

function readResolution(parameters: QueryParameters, window: Window | undefined): Resolution | undefined {
  const requested = parameters.optional('resolution', METRICS_PARAMETERS.resolution);
  if (!window) return undefined;
  const cap = requested && exceededCap(requested, window);
  if (cap) {
    parameters.problem(
      'resolution',
      `resolution ${requested} allows a window of at most ${cap}; shorten the window or use a coarser resolution.`,
    );
  }
  const resolution = requested ?? defaultResolution(window);
  const buckets = bucketCount(window, resolution);
  // If the window is also too long for the requested resolution, report only that error, because it is more helpful.
  if (!cap && buckets > MAX_PAGE_POINTS) {
    parameters.problem(
      'endTime',
      `The window has ${buckets} ${resolution} buckets, but a response may have at most ${MAX_PAGE_POINTS}; shorten the window.`,
    );
  }
  return resolution;
}

export function readWindow(parameters: QueryParameters): Window | undefined {
  const startTime = parameters.required('startTime', WINDOW_PARAMETERS.startTime);
  const endTime = parameters.required('endTime', WINDOW_PARAMETERS.endTime);
  if (startTime === undefined || endTime === undefined) return undefined;
  if (startTime < endTime) return { startTime, endTime };
  parameters.problem('endTime', 'endTime must be after startTime by at least a millisecond.');
  return undefined;
}

const FILTERS = { ...FILTER_PARAMETERS, ...ACCOUNT_FILTERS };
const NO_UUID = '';

/**
 * Reads the filters, such as `workspace` and `excludeWorkspace`. Usage passes a filter if it has any of the filter's values. Excluding
 * filters take precedence. Values are deduplicated and sorted. Source: docs/api-contract.md, "Groups and filters"; docs/decisions/0019.
 */
export function readFilters(parameters: QueryParameters): FilterValues {
  const filters = readValues(parameters, (field) => field, 'withoutResourceUuid');
  const excluded = readValues(parameters, (field) => EXCLUDING_PARAMETER[field], 'excludeWithoutResourceUuid');
  const sent = [
    ...METRICS_DIMENSIONS.map((dimension) => [ENTRY_FIELD[dimension], filters[dimension]] as const),
    ...METRICS_DIMENSIONS.map(
      (dimension) => [EXCLUDING_PARAMETER[ENTRY_FIELD[dimension]], excluded[dimension]] as const,
    ),
  ];
  let count = 0;
  for (const [parameter, values = []] of sent) {
    count += values.length;
    if (count <= MAX_FILTER_VALUES) continue;
    parameters.problem(
      parameter,
      `${parameter} has too many values; all filters together may have at most ${MAX_FILTER_VALUES} values.`,
    );
    break;
  }
  return { filters, excluded };
}

function readValues(
  parameters: QueryParameters,
  nameOf: (field: MetricsField) => keyof typeof FILTERS,
  without: 'withoutResourceUuid' | 'excludeWithoutResourceUuid',
): DimensionValues {
  const noUuid = parameters.optional(without, FILTER_PARAMETERS[without]) ? [NO_UUID] : [];
  const read = METRICS_DIMENSIONS.map((dimension) => {
    const name = nameOf(ENTRY_FIELD[dimension]);
    const values = parameters.list(name, FILTERS[name]) ?? [];
    return [dimension, [...new Set(dimension === 'resource_uuid' ? [...values, ...noUuid] : values)].sort()] as const;
  });
  return Object.fromEntries(read.filter(([, values]) => values.length > 0));
}
