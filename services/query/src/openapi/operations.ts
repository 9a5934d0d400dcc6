/** Every operation of the API. The contract tests compare this list with the routes. */
import { healthOperation, type OperationSketch, resourceMetadataOperation } from '@meterline/api';
import {
  ACCOUNT_LIST_PARAMETERS,
  API_KEY_LIST_PARAMETERS,
  EVENTS_PARAMETERS,
  MAX_FILTER_VALUES,
  MAX_PAGE_POINTS,
  METRICS_PARAMETERS,
  RESOURCE_TYPES_PARAMETERS,
} from '@meterline/catalog/api';
import {
  ACCOUNTS_EXAMPLES,
  BILLING_DIMENSIONS_EXAMPLES,
  EVENTS_EXAMPLES,
  GROUP_BY_EXAMPLES,
  KEY_CREATION_EXAMPLES,
  KEY_LIST_EXAMPLES,
  METRICS_EXAMPLES,
  READINESS_EXAMPLES,
  RESOURCE_TYPES_EXAMPLES,
  REVOCATION_EXAMPLES,
} from './examples.js';
import { errorReference } from './responses.js';
import { reference } from './schemas.js';

const API_ERRORS = {
  '400': errorReference('BadRequest'),
  '401': errorReference('Unauthorized'),
  '403': errorReference('Forbidden'),
  '429': errorReference('TooMany'),
  '503': errorReference('Unavailable'),
  default: errorReference('Other'),
};
const PUBLIC_ERRORS = { default: errorReference('Other') };

export const OPERATIONS: readonly OperationSketch[] = [
  {
    path: '/v0/accounts/{accountId}/metrics',
    method: 'get',
    operationId: 'getAccountMetrics',
    tag: 'Usage and cost',
    summary: 'What an account used, and what it cost',
    description:
      'Sums up usage and cost over a window, as a whole or by up to three dimensions, with a series of hours, days, weeks ' +
      'or months. Events that arrive late, are corrected or are sent again count as they should from their arrival on.\n\n' +
      'A group shows the dimensions that it is grouped by. Besides them it shows the workspace, type or name that all of its ' +
      'usage has; where there are several, the member is left out. A member of the account never sees a workspace.\n\n' +
      'A filter may be given several times, as in `workspace=a&workspace=b`: one of its values is enough. What a parameter ' +
      'that begins with `exclude` names is left out, also where another filter selects it. All filters together may have ' +
      `${MAX_FILTER_VALUES} values, and the URL 24 KiB. Several values and exclusion are extensions of the platform’s API.\n\n` +
      `A result with more groups than \`limit\`, or with more than ${MAX_PAGE_POINTS} points (groups times buckets), comes in ` +
      'pages: pass `meta.nextCursor` as `cursor` until `meta.hasMore` is false. All pages are of one answer: every group comes ' +
      'once, and the pages add up to the `summary`, which is that of the whole window on every page. Events that arrive ' +
      'meanwhile do not show; where one has replaced what the first page was read from before the second page was asked for, ' +
      'that page is a 400 `cursor_expired`. Only an admin of the account may group or filter by ' +
      'workspace.',
    query: METRICS_PARAMETERS,
    isConditional: true,
    success: { description: 'A page of groups.', schema: reference('AccountMetricsResponse') },
    examples: METRICS_EXAMPLES,
    errors: API_ERRORS,
  },
  {
    path: '/v0/accounts/{accountId}/events',
    method: 'get',
    operationId: 'listEvents',
    tag: 'Usage and cost',
    summary: 'The events behind a figure',
    description:
      'Each event as it counts now, with the price that it got and what it replaced: with the window and the filters of a ' +
      'figure, the costs of all its pages add up to that figure. Events that arrive or change meanwhile show on pages that ' +
      'are asked for afterwards. For admins of the account, because events name workspaces.',
    isExtension: true,
    query: EVENTS_PARAMETERS,
    success: { description: 'A page of events.', schema: reference('EventPage') },
    examples: EVENTS_EXAMPLES,
    errors: API_ERRORS,
  },
  {
    path: '/v0/accounts/{accountId}/metrics/enums/group-by',
    method: 'get',
    operationId: 'listGroupByDimensions',
    tag: 'Usage and cost',
    summary: 'What one can group by',
    description: 'The dimensions that `groupBy` may name, in canonical order. The same for every account.',
    success: { description: 'The dimensions.', schema: reference('GroupByValues') },
    examples: GROUP_BY_EXAMPLES,
    errors: API_ERRORS,
  },
  {
    path: '/v0/accounts/{accountId}/metrics/enums/resource-types',
    method: 'get',
    operationId: 'listResourceTypes',
    tag: 'Usage and cost',
    summary: 'The resource types that were used',
    description:
      'The resource types with at least one event of the account in the window. The filters are those of the metrics; here ' +
      'they are an extension of the platform’s API.',
    query: RESOURCE_TYPES_PARAMETERS,
    success: { description: 'The resource types.', schema: reference('ResourceTypeValues') },
    examples: RESOURCE_TYPES_EXAMPLES,
    errors: API_ERRORS,
  },
  {
    path: '/v0/accounts/{accountId}/metrics/enums/billing-dimensions',
    method: 'get',
    operationId: 'listBillingDimensions',
    tag: 'Usage and cost',
    summary: 'What is billed, and in which unit',
    description:
      'The billing dimensions, each with the resource type that it belongs to and its unit: `gbs` are GB-seconds, `count` ' +
      'is a number of events, `hours` are hours of activity. The same for every account, so no client needs a table of its ' +
      'own.',
    isExtension: true,
    success: { description: 'The billing dimensions.', schema: reference('BillingDimensionValues') },
    examples: BILLING_DIMENSIONS_EXAMPLES,
    errors: API_ERRORS,
  },
  {
    path: '/v0/accounts',
    method: 'get',
    operationId: 'listAccounts',
    tag: 'Access',
    summary: 'The caller’s accounts',
    description:
      'The accounts that the key or token belongs to, each with the caller’s role in it. An object with pages since version ' +
      '2026-04-28, and takes parameters since then; before, an array of everything.',
    query: ACCOUNT_LIST_PARAMETERS,
    ignoresWorkspace: true,
    success: {
      description: 'The accounts.',
      schema: { oneOf: [reference('AccountPage'), reference('AccountArray')] },
    },
    examples: ACCOUNTS_EXAMPLES,
    errors: API_ERRORS,
  },
  {
    path: '/v0/service_accounts/{clientId}/api_keys',
    method: 'get',
    operationId: 'listApiKeys',
    tag: 'Access',
    summary: 'The API keys of a service account',
    description:
      'The keys of a service account, revoked and expired ones included, for an admin of the account that they belong to. ' +
      'Nobody sees a key itself again. An object with pages since version 2026-04-28, and takes parameters since then; ' +
      'before, an array of everything. A token needs the scope `apiKey:list`.\n\n' +
      'A service account is a name within an account, and is there as long as it has a key: one without is a 404.',
    query: API_KEY_LIST_PARAMETERS,
    ignoresWorkspace: true,
    success: {
      description: 'The keys.',
      schema: { oneOf: [reference('ApiKeyPage'), reference('ApiKeyArray')] },
    },
    examples: KEY_LIST_EXAMPLES,
    errors: { ...API_ERRORS, '404': errorReference('NotFound') },
  },
  {
    path: '/v0/service_accounts/{clientId}/api_keys',
    method: 'post',
    operationId: 'createApiKey',
    tag: 'Access',
    summary: 'Create an API key',
    description:
      'Creates a key of a service account, and with its first key the service account, for an admin of the account that the ' +
      'key is to read. **The key itself is in this answer alone.** A token needs the scope `apiKey:write`.\n\n' +
      'An account has at most 1,000 keys. Beyond that the oldest key that is revoked or has expired is forgotten, with its ' +
      'id; while none is, the answer is a 409 `too_many_api_keys`.',
    ignoresWorkspace: true,
    body: reference('NewApiKey'),
    success: { description: 'The key was created.', schema: reference('CreatedApiKey') },
    examples: KEY_CREATION_EXAMPLES,
    errors: { ...API_ERRORS, '409': errorReference('Conflict') },
  },
  {
    path: '/v0/service_accounts/{clientId}/api_keys/{apiKeyId}',
    method: 'delete',
    operationId: 'revokeApiKey',
    tag: 'Access',
    summary: 'Revoke an API key',
    description:
      'Revokes a key of a service account, at once and everywhere, for an admin of the account that the key belongs to and ' +
      'for the key itself. Again is no error. A token needs the scope `apiKey:write`.',
    ignoresWorkspace: true,
    success: { description: 'The key is revoked. The answer has no body.' },
    examples: REVOCATION_EXAMPLES,
    errors: { ...API_ERRORS, '404': errorReference('NotFound') },
  },
  resourceMetadataOperation({ ...PUBLIC_ERRORS, '404': errorReference('NotFound') }),
  healthOperation(PUBLIC_ERRORS),
  {
    path: '/readyz',
    method: 'get',
    operationId: 'getReadiness',
    tag: 'Health',
    summary: 'Can requests be answered?',
    description:
      'Asks ClickHouse and Redis, and waits three seconds at most. 503 too while the process stops, for load balancers. ' +
      '`degraded` names a server that answers and cannot do all of its work: a full Redis refuses to revoke a key.',
    success: { description: 'They can.', schema: reference('Health') },
    examples: READINESS_EXAMPLES,
    errors: { ...PUBLIC_ERRORS, '503': errorReference('NotReady') },
  },
];
