/** The operations about usage and cost, with examples that the contract tests send and compare digit for digit. */
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
  description: 'The `ETag` of a response that the client has: while it is the response still, 304 comes instead of it.',
};

/** Source: RFC 9111, section 5.2.1.1. */
const CACHE_CONTROL: OpenApiParameter = {
  required: false,
  name: 'Cache-Control',
  in: 'header',
  schema: { type: 'string' },
  description: 'With `max-age=N` (N up to 300) a first page may come from memory, up to N seconds old.',
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
    summary: 'A resource of one workspace, and a name that several workspaces use, which has no `workspace`',
    parameters: { accountId: 'acme', ...WINDOW, resolution: 'monthly', groupBy: ['resource_name'] },
    ...responseOf(
      'monthly',
      { totalCost: 13.85 },
      { resourceType: 'agent', resourceName: 'support', ...inOctober(13.8) },
      { workspace: 'staging', resourceType: 'agent', resourceName: 'crawler', ...inOctober(0.05) },
    ),
  },
  total: {
    summary: 'What everything cost',
    parameters: { accountId: 'acme', ...WINDOW, resolution: 'monthly' },
    ...responseOf('monthly', { totalCost: 13.85 }, inOctober(13.85)),
  },
};

/** What every operation here has. */
const shared = { method: 'get', tag: 'Usage and cost', errors: API_ERRORS } as const;

/** What every response with metrics has, about one account or several. */
const METRICS_RESPONSE = {
  otherParameters: [IF_NONE_MATCH, CACHE_CONTROL],
  success: {
    description: 'A page of groups.',
    schemas: ['AccountMetricsResponse'],
    headers: { ...headerReference('ETag'), ...headerReference('Age') },
  },
  otherResponses: {
    '304': {
      description: 'The response is the one that `If-None-Match` names.',
      headers: { ...headerReference('X-Request-Id'), ...headerReference('ETag'), ...headerReference('Age') },
    },
  },
} as const;

export const USAGE_OPERATIONS: readonly OperationSketch[] = [
  {
    ...shared,
    path: '/v0/accounts/{accountId}/metrics',
    operationId: 'getAccountMetrics',
    summary: 'What an account used, and what it cost',
    description:
      'Sums up usage and cost over a window, as a whole or by up to three dimensions, with a series of hours, days, weeks ' +
      'or months. Events that arrive late, are corrected or are sent again count as they should from their arrival on. A ' +
      'request with `Cache-Control: max-age=N` (N up to 300) may get a first page that is up to N seconds old, which then has ' +
      'the header `Age`.\n\n' +
      'A group shows the dimensions that it is grouped by. Besides them it shows the workspace, type or name that all of its ' +
      'usage has; where there are several, the member is left out. A member of the account never sees a workspace.\n\n' +
      'A filter may be given several times, as in `workspace=a&workspace=b`: one of its values is enough. What a parameter ' +
      'that begins with `exclude` names is left out, also where another filter selects it. All filters together may have ' +
      `${MAX_FILTER_VALUES} values, and the URL 24 KiB. Several values and exclusion are extensions of the platform’s API.\n\n` +
      `A result with more groups than \`limit\`, or with more than ${MAX_PAGE_POINTS} points (groups times buckets), comes in ` +
      'pages: pass `meta.nextCursor` as `cursor` until `meta.hasMore` is false. All pages are of one response: every group comes ' +
      'once, and the pages add up to the `summary`, which is that of the whole window on every page. Events that arrive ' +
      'meanwhile do not show; where one has replaced what the first page was read from before the second page was asked for, ' +
      'that page is a 400 `cursor_expired`. Only an admin of the account may group or filter by workspace.',
    query: METRICS_PARAMETERS,
    ...METRICS_RESPONSE,
    examples: METRICS_EXAMPLES,
  },
  {
    ...shared,
    path: '/v0/metrics',
    operationId: 'getMetrics',
    summary: 'What all of the caller’s accounts used, and what it cost',
    description:
      'As for one account, with the same rules, pages and exactness, over all accounts that the key or token belongs to. ' +
      '`groupBy` may name `account`, too, of three dimensions in all; `account` and `excludeAccount` filter. An account that is ' +
      'not the caller’s is a 403, whether it exists or not. Where the caller is a member of one of the accounts, groups have ' +
      'no workspace, and none may be grouped or filtered by. A key of the role operator reads every account, as an admin of it.',
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
    ...shared,
    path: '/v0/accounts/{accountId}/events',
    operationId: 'listEvents',
    summary: 'The events behind a figure',
    description:
      'Each event as it counts now, with the price that it got and what it replaced: with the window and the filters of a ' +
      'figure, the costs of all its pages add up to that figure. Events that arrive or change meanwhile show on pages that ' +
      'are asked for afterwards. For admins of the account, because events name workspaces.',
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
    ...shared,
    path: '/v0/accounts/{accountId}/metrics/enums/group-by',
    operationId: 'listGroupByDimensions',
    summary: 'What one can group by',
    description: 'The dimensions that `groupBy` may name, in canonical order. The same for every account.',
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
    ...shared,
    path: '/v0/accounts/{accountId}/metrics/enums/resource-types',
    operationId: 'listResourceTypes',
    summary: 'The resource types that were used',
    description:
      'The resource types with at least one event of the account in the window. The filters are those of the metrics; here ' +
      'they are an extension of the platform’s API.',
    query: RESOURCE_TYPES_PARAMETERS,
    success: { description: 'The resource types.', schemas: ['ResourceTypeValues'] },
    examples: {
      inOctober: {
        summary: 'An account that used agents only',
        parameters: { accountId: 'acme', ...WINDOW },
        response: { values: ['agent'] },
      },
    },
  },
  {
    ...shared,
    path: '/v0/accounts/{accountId}/metrics/enums/billing-dimensions',
    operationId: 'listBillingDimensions',
    summary: 'What is billed, in which unit, and at which price',
    description:
      'The billing dimensions, each with its resource type, its unit and the price in force now for the account: `gbs` are ' +
      'GB-seconds, `count` is a number of events, `hours` are hours of activity. An amount of usage costs usage × amount ÷ per. ' +
      'Prices may differ by account. An event is priced by its own timestamp, so an earlier event may have had another price.\n\n' +
      'The prices are those of the newest price book that an ingest worker has registered; a new book shows within a minute. Before ' +
      'the first book no dimension has a `price`.',
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
