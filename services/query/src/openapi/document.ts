/**
 * The OpenAPI document of this service. Its schemas are those that check requests and that clients read responses with; the contract
 * tests compare its operations with the routes.
 */
import { COMMON_SCHEMAS, commonOperations, type OpenApiDocument, openApiDocument } from '@meterline/api';
import * as api from '@meterline/catalog';
import { ERRORS } from '../http/errors.js';
import { ACCESS_OPERATIONS } from './access.js';
import { ALERT_OPERATIONS } from './alerts.js';
import { USAGE_OPERATIONS } from './usage.js';

const DESCRIPTION = `What accounts of a workload platform used, and what that cost.

**Credentials.** Send an API key or an OAuth2 access token as \`Authorization: Bearer …\` or
\`X-Svc-Authorization: Bearer …\`. Where \`Authorization\` has another scheme, such as a proxy's \`Basic\`, the other header
counts; two different bearer tokens are refused. A token needs the scope \`admin\`, and for keys \`apiKey:list\` or \`apiKey:write\`.

**Versions.** The header \`Svc-Version\` pins the behaviour; without it, ${api.API_VERSIONS[0]} applies.

**Figures.** Money and usage are exact decimals, written as JSON numbers of as many digits as they have. Read them as
decimals: a double keeps about 15 digits. Costs are in USD.

**Times.** RFC 3339 in UTC, and so are all buckets: hours, days, ISO weeks and months.

**Parameters** are read strictly: one that is unknown or empty is refused, so that a typo does not read as "everything", and
so is one given twice, but for \`groupBy\` and the filters.

**Errors** are \`{code, error, message, details?, requestId}\`. Branch on \`error\`; \`message\` says how to fix the request.`;

const HEADERS = {
  ETag: {
    description: 'The tag of this response, for `If-None-Match`: another response has another tag.',
    required: true,
    schema: { type: 'string' },
  },
  Age: {
    description: 'How many seconds old the response is; only of one from memory, which `Cache-Control` allows.',
    schema: { type: 'integer', minimum: 0 },
  },
};

export function createOpenApiDocument(): OpenApiDocument {
  return openApiDocument({
    title: 'Meterline',
    summary: 'Billing metrics: exact usage and cost of an account.',
    description: DESCRIPTION,
    tags: [
      { name: 'Usage and cost', description: 'What was used, and what it cost.' },
      { name: 'Access', description: 'The caller’s accounts, and API keys.' },
      { name: 'Alerts', description: 'When an account has used or spent so much, and who is told.' },
      { name: 'Health', description: 'For load balancers and supervisors; needs no credentials.' },
    ],
    operations: [
      ...USAGE_OPERATIONS,
      ...ACCESS_OPERATIONS,
      ...ALERT_OPERATIONS,
      ...commonOperations({
        summary: 'Can requests be answered?',
        description:
          'Asks ClickHouse and Redis, and waits three seconds at most. 503 too while the process stops, for load balancers. ' +
          '`degraded` names a server that cannot do all of its work: a full Redis refuses to revoke a key, and one that is away is ' +
          'needed for API keys, but not for most requests with tokens. It is 503 where API keys are the only credentials, and where Redis may evict keys.',
        examples: { ready: { summary: 'ClickHouse and Redis answer', response: { status: 'ready' } } },
      }),
    ],
    errors: ERRORS,
    headers: HEADERS,
    schemas: {
      AccountMetricsResponse: api.metricsResponseSchema,
      AccountMetricsDataEntry: api.metricsEntrySchema,
      AccountMetricsPoint: api.metricsPointSchema,
      EventPage: api.eventPageSchema,
      Event: api.eventSchema,
      EventRevision: api.eventRevisionSchema,
      GroupByValues: api.groupByEnumSchema,
      ResourceTypeValues: api.resourceTypesEnumSchema,
      BillingDimensionValues: api.billingDimensionsEnumSchema,
      Account: api.accountSchema,
      AccountSettings: api.accountSettingsSchema,
      AccountArray: api.accountArraySchema,
      AccountPage: api.accountPageSchema,
      ApiKey: api.apiKeySchema,
      ApiKeyArray: api.apiKeyArraySchema,
      ApiKeyPage: api.apiKeyPageSchema,
      NewApiKey: api.newApiKeySchema,
      CreatedApiKey: api.createdApiKeySchema,
      Alert: api.alertSchema,
      AlertArray: api.alertArraySchema,
      AlertPage: api.alertPageSchema,
      AlertWithSecret: api.alertWithSecretSchema,
      NewAlert: api.newAlertSchema,
      AlertChange: api.alertChangeSchema,
      Webhook: api.webhookSchema,
      Delivery: api.deliverySchema,
      DeliveryArray: api.deliveryArraySchema,
      DeliveryPage: api.deliveryPageSchema,
      Error: api.errorResponseSchema,
      ...COMMON_SCHEMAS,
    },
  });
}
