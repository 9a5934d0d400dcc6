/** The query string of GET …/metrics, parsed. Source: the API specification, section "Billing API", and DESIGN section 6. */
import {
  defaultResolution,
  exceededCap,
  type GroupByDimension,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import { MAX_METRICS_PAGE, METRICS_PARAMETERS as schemas, WINDOW_PARAMETERS } from '@meterline/catalog/api';
import type { MetricsQuestion } from '@meterline/warehouse';
import { type ParameterRules, QueryParameters } from '../http/query-parameters.js';

/** What the caller asks for: a question to the warehouse, before the account and the watermarks are added. */
export interface MetricsRequest extends Omit<MetricsQuestion, 'accountId' | 'sealed'> {
  /** Empty for the first page. */
  readonly cursor: string;
}

const INSTEAD = 'filter with workspace, resourceType, resourceName, resourceUuid or billingDimension';

const RULES = {
  names: Object.keys(schemas),
  mayBeEmpty: ['resourceUuid', 'cursor'],
  unsupported: {
    label: INSTEAD,
    unit: `each billing dimension has one unit; ${INSTEAD}`,
  },
} as const satisfies ParameterRules;

/** @throws ApiError `invalid_parameter` with every fault */
export function parseMetricsRequest(rawQuery: string): MetricsRequest {
  const parameters = new QueryParameters(rawQuery, RULES);
  const window = readWindow(parameters);
  const resolution = readResolution(parameters, window);
  const groupBy = parameters.optional('groupBy', schemas.groupBy) ?? [];
  const filters = {
    workspace: parameters.optional('workspace', schemas.workspace),
    resource_type: parameters.optional('resourceType', schemas.resourceType),
    resource_name: parameters.optional('resourceName', schemas.resourceName),
    resource_uuid: parameters.optional('resourceUuid', schemas.resourceUuid),
    billing_dimension: parameters.optional('billingDimension', schemas.billingDimension),
  };
  const limit = parameters.optional('limit', schemas.limit) ?? MAX_METRICS_PAGE;
  const cursor = parameters.optional('cursor', schemas.cursor) ?? '';
  if (!window || !resolution || !parameters.areValid) throw parameters.refusal();
  return { window, resolution, groupBy, filters: given(filters), limit, cursor };
}

/** Whether the request groups or filters by workspace, which only an account's admins may do. */
export function readsWorkspaces({ groupBy, filters }: MetricsRequest): boolean {
  return groupBy.includes('workspace') || filters.workspace !== undefined;
}

function readResolution(parameters: QueryParameters, window: Window | undefined): Resolution | undefined {
  const asked = parameters.optional('resolution', schemas.resolution);
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

/** startTime and endTime; undefined if one of them is at fault. */
function readWindow(parameters: QueryParameters): Window | undefined {
  const startTime = parameters.required('startTime', WINDOW_PARAMETERS.startTime);
  const endTime = parameters.required('endTime', WINDOW_PARAMETERS.endTime);
  if (startTime === undefined || endTime === undefined) return undefined;
  if (startTime < endTime) return { startTime, endTime };
  parameters.fault('endTime', 'endTime must be after startTime by at least a millisecond.');
  return undefined;
}

/** A request whose only parameters are the window's. @throws ApiError `invalid_parameter` with every fault */
export function parseWindowRequest(rawQuery: string): Window {
  const parameters = new QueryParameters(rawQuery, { names: Object.keys(WINDOW_PARAMETERS) });
  const window = readWindow(parameters);
  if (!window || !parameters.areValid) throw parameters.refusal();
  return window;
}

function given(filters: Partial<Record<GroupByDimension, string | undefined>>): MetricsRequest['filters'] {
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));
}
