/** Describes the operations for usage and cost. Contract tests send the examples and compare the responses digit by digit. */
import { headerReference, type OpenApiParameter, type OperationSketch } from '@meterline/api';
import {
  ACCOUNTS_METRICS_PARAMETERS,
  DEFAULT_PRICE_BOOK,
  EVENTS_PARAMETERS,
  GROUP_BY_DIMENSIONS,
  MAX_FILTER_VALUES,
  MAX_PAGE_POINTS,
  METRICS_PARAMETERS,
  RESOURCE_TYPES_PARAMETERS,
} from '@meterline/catalog';
import { API_ERRORS } from '../http/errors.js';

/** Source: RFC 9110, section 13.1.2. */
const IF_NONE_MATCH: OpenApiParameter = {
  required: false,
  name: 'If-None-Match',
  in: 'header',
  schema: { type: 'string' },
  description: 'The `ETag` of an earlier response. If the response has not changed, the status is 304 without a body.',
};

/** Source: RFC 9111, section 5.2.1.1. */
const CACHE_CONTROL: OpenApiParameter = {
  required: false,
  name: 'Cache-Control',
  in: 'header',
  schema: { type: 'string' },
  description: 'With `max-age=N` (N up to 300), a first page may come from the cache, up to N seconds old.',
};

const WINDOW = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-03T00:00:00Z' };
const LAST_PAGE = { hasMore: false, nextCursor: '' };
const COMPUTE = { resourceType: 'agent', billingDimension: 'agent_compute_runtime_gbs' };
const onDay = (day: number, cost: number, usage: number) => ({ timestamp: `2025-10-0${day}T00:00:00Z`, cost, usage });
const responseOf = (resolution: string, summary: object, ...data: readonly object[]) => ({
  response: { ...WINDOW, resolution, summary, data, meta: LAST_PAGE },
});
const inOctober = (cost: number) => ({ summary: { cost }, timeseries: [{ timestamp: WINDOW.startTime, cost }] });

const EVENT = {
  eventId: '01999f3c-2a00-7c31-9d5e-0b6f1e2d3c4b',
  timestamp: '2025-10-02T09:00:00Z',
  workspace: 'staging',
  resourceType: 'agent',
  resourceName: 'crawler',
  resourceUuid: '',
  billingDimension: 'agent_async_requests_count',
  usage: 250000,
  cost: 0.05,
  voided: false,
  revision: 0,
  priceRevision: 0,
  priceBook: 0,
  price: { amount: 0.2, per: 1000000, effectiveFrom: '1970-01-01T00:00:00Z' },
  history: [],
};

const METRICS_EXAMPLES: OperationSketch['examples'] = {
  byWorkspace: {
    summary: 'Cost and usage of agents’ compute by workspace, day by day',
    parameters: {
      accountId: 'acme',
      ...WINDOW,
      resolution: 'daily',
      groupBy: ['workspace', 'billing_dimension'],
      billingDimension: ['agent_compute_runtime_gbs'],
    },
    ...responseOf(
      'daily',
      { totalCost: 13.8, totalUsage: 1200000 },
      {
        workspace: 'production',
        ...COMPUTE,
        summary: { cost: 11.5, usage: 1000000 },
        timeseries: [onDay(1, 11.5, 1000000), onDay(2, 0, 0)],
      },
      {
        workspace: 'staging',
        ...COMPUTE,
        summary: { cost: 2.3, usage: 200000 },
        timeseries: [onDay(1, 0, 0), onDay(2, 2.3, 200000)],
      },
    ),
  },
  byResource: {
    summary: 'By resource name; `workspace` is omitted for a name that several workspaces use',
    parameters: { accountId: 'acme', ...WINDOW, resolution: 'monthly', groupBy: ['resource_name'] },
    ...responseOf(
      'monthly',
      { totalCost: 13.85 },
      { resourceType: 'agent', resourceName: 'support', ...inOctober(13.8) },
      { workspace: 'staging', resourceType: 'agent', resourceName: 'crawler', ...inOctober(0.05) },
    ),
  },
  total: {
    summary: 'Total cost',
    parameters: { accountId: 'acme', ...WINDOW, resolution: 'monthly' },
    ...responseOf('monthly', { totalCost: 13.85 }, inOctober(13.85)),
  },
};

const COMMON = { method: 'get', tag: 'Usage and cost', errors: API_ERRORS } as const;

const METRICS_RESPONSE = {
  otherParameters: [IF_NONE_MATCH, CACHE_CONTROL],
  success: {
    description: 'A page of groups.',
    schemas: ['AccountMetricsResponse'],
    headers: { ...headerReference('ETag'), ...headerReference('Age') },
  },
  otherResponses: {
    '304': {
      description: 'The response has not changed since the one named in `If-None-Match`.',
      headers: { ...headerReference('X-Request-Id'), ...headerReference('ETag'), ...headerReference('Age') },
    },
  },
} as const;

export const USAGE_OPERATIONS: readonly OperationSketch[] = [
  {
    ...COMMON,
    path: '/v0/accounts/{accountId}/metrics',
    operationId: 'getAccountMetrics',
    summary: 'Get usage and cost of an account',
    description:
      'Returns usage and cost in a window, in total or by up to three dimensions, with a time series of hours, days, weeks or ' +
      'months. Late, corrected and repeated events are counted correctly as soon as they arrive. A request with ' +
      '`Cache-Control: max-age=N` (N up to 300) may get a first page that is up to N seconds old, with the header `Age`.\n\n' +
      'A group has the dimensions that it is grouped by. It also has the workspace, type or name if all of its usage has the same ' +
      'value; otherwise the field is omitted. Members of the account never see workspaces.\n\n' +
      'Filters may be repeated, as in `workspace=a&workspace=b`, which selects events with any of the values. Parameters that start ' +
      'with `exclude` remove events, even if another filter selects them. All filters together may have at most ' +
      `${MAX_FILTER_VALUES} values, and the URL at most 24 KiB. Repeated filters and exclusion are extensions of the platform’s API.\n\n` +
      `A result with more groups than \`limit\`, or more than ${MAX_PAGE_POINTS} points (groups times buckets), has several pages: ` +
      'pass `meta.nextCursor` as `cursor` until `meta.hasMore` is false. All pages belong to one consistent result: every group ' +
      'appears once, and the groups add up to the `summary`, which covers the whole window on every page. Events that arrive in the ' +
      'meantime are not included. If an event changed the result before the second page was requested, the second page is a 400 ' +
      '`cursor_expired`. Only an admin of the account may group or filter by workspace.',
    query: METRICS_PARAMETERS,
    ...METRICS_RESPONSE,
    examples: METRICS_EXAMPLES,
  },
  {
    ...COMMON,
    path: '/v0/metrics',
    operationId: 'getMetrics',
    summary: 'Get usage and cost of all accounts of the caller',
    description:
      'As for one account, with the same rules and pages, over all accounts that the key or token may read. `groupBy` also accepts ' +
      '`account`, as one of at most three dimensions. The filters are `account` and `excludeAccount` in addition. An account that ' +
      'the caller may not read is a 403, whether or not it exists. If the caller is only a member of one of the accounts, groups ' +
      'have no workspace, and grouping or filtering by workspace is not allowed. A key with the role operator reads every account ' +
      'like an admin.',
    isExtension: true,
    query: ACCOUNTS_METRICS_PARAMETERS,
    ...METRICS_RESPONSE,
    examples: {
      byAccount: {
        summary: 'Cost by account',
        parameters: { ...WINDOW, resolution: 'monthly', groupBy: ['account'] },
        ...responseOf('monthly', { totalCost: 13.85 }, { account: 'acme', ...inOctober(13.85) }),
      },
    },
  },
  {
    ...COMMON,
    path: '/v0/accounts/{accountId}/events',
    operationId: 'listEvents',
    summary: 'List the events behind a total',
    description:
      'Returns the current state of each event, with its price and the revisions that it replaced. With the window and filters of ' +
      'a total, the costs of all pages add up to that total. Events that arrive or change in the meantime appear on pages that are ' +
      'requested afterwards. By cost, an event whose cost changes between two requests may be on both pages or on none: to read all events, ' +
      'order them by timestamp. For admins of the account only, because events name workspaces.',
    isExtension: true,
    query: EVENTS_PARAMETERS,
    success: { description: 'A page of events.', schemas: ['EventPage'] },
    examples: {
      ofResource: {
        summary: 'Why the requests of one agent cost five cents',
        parameters: { accountId: 'acme', ...WINDOW, resourceName: ['crawler'] },
        response: { data: [EVENT], meta: LAST_PAGE },
      },
    },
  },
  {
    ...COMMON,
    path: '/v0/accounts/{accountId}/metrics/enums/group-by',
    operationId: 'listGroupByDimensions',
    summary: 'List the groupBy dimensions',
    description: 'The values of `groupBy`, in canonical order. They are the same for every account.',
    success: { description: 'The dimensions.', schemas: ['GroupByValues'] },
    examples: {
      dimensions: {
        summary: 'The five dimensions',
        parameters: { accountId: 'acme' },
        response: { values: GROUP_BY_DIMENSIONS },
      },
    },
  },
  {
    ...COMMON,
    path: '/v0/accounts/{accountId}/metrics/enums/resource-types',
    operationId: 'listResourceTypes',
    summary: 'List the resource types of an account',
    description:
      'The resource types with at least one event of the account in the window. The filters are the same as for metrics, as an ' +
      'extension of the platform’s API.',
    query: RESOURCE_TYPES_PARAMETERS,
    success: { description: 'The resource types.', schemas: ['ResourceTypeValues'] },
    examples: {
      inOctober: {
        summary: 'An account that only used agents',
        parameters: { accountId: 'acme', ...WINDOW },
        response: { values: ['agent'] },
      },
    },
  },
  {
    ...COMMON,
    path: '/v0/accounts/{accountId}/metrics/enums/billing-dimensions',
    operationId: 'listBillingDimensions',
    summary: 'List the billing dimensions with their prices',
    description:
      'The billing dimensions, each with its resource type, its unit and the current price for the account. The unit `gbs` is ' +
      'GB-seconds, `count` is a number of events, and `hours` is hours of activity. The dimensions that the platform has added come ' +
      'last, some in units of their own. Usage costs usage × amount ÷ per. Prices may ' +
      'differ by account. An event is priced by its own timestamp, so earlier events may have other prices.\n\n' +
      'The prices come from the newest price book that an ingest worker has registered. A new book takes effect within a minute. ' +
      'Without a registered book, dimensions have no `price`.',
    isExtension: true,
    success: { description: 'The billing dimensions.', schemas: ['BillingDimensionValues'] },
    examples: {
      dimensions: {
        summary: 'All of them, with the prices of the example price book',
        parameters: { accountId: 'acme' },
        response: { values: DEFAULT_PRICE_BOOK.billingDimensions('acme', Date.UTC(2025, 10)) },
      },
    },
  },
];
