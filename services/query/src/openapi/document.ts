/** Creates the OpenAPI document from the schemas that validate requests. Contract tests compare its operations with the routes. */
import { COMMON_SCHEMAS, commonOperations, type OpenApiDocument, openApiDocument } from '@meterline/api';
import * as api from '@meterline/catalog';
import { ERRORS } from '../http/errors.js';
import { ACCESS_OPERATIONS } from './access.js';
import { ALERT_OPERATIONS } from './alerts.js';
import { USAGE_OPERATIONS } from './usage.js';
import { VIEW_OPERATIONS } from './views.js';

const DESCRIPTION = `Usage and cost of the accounts of a workload platform.

**Credentials.** Send an API key or an OAuth2 access token as \`Authorization: Bearer …\` or
\`X-Svc-Authorization: Bearer …\`. Use the second header if \`Authorization\` has another scheme, such as a proxy's \`Basic\`. Two
different bearer tokens are an error. A token needs the scope \`admin\`, or \`apiKey:list\` or \`apiKey:write\` for operations on keys.

**Versions.** The header \`Svc-Version\` pins the behavior. Default: ${api.API_VERSIONS[0]}.

**Figures.** Money and usage are exact decimals, written as JSON numbers with all their digits. Parse them as decimals: a double
keeps only about 15 digits. Costs are in USD.

**Times.** RFC 3339 in UTC. Buckets are hours, days, ISO weeks and months in UTC.

**Parameters** are parsed strictly. Unknown and empty parameters are errors, so that a mistyped filter does not select everything.
Repeated parameters are errors too, except \`groupBy\` and the filters.

**Errors** are \`{code, error, message, details?, requestId}\`. Branch on \`error\`; \`message\` says how to fix the request.`;

const HEADERS = {
  ETag: {
    description: 'Entity tag of the response, for `If-None-Match`. It changes whenever the response changes.',
    required: true,
    schema: { type: 'string' },
  },
  Age: {
    description:
      'Age of the response in seconds. Only present if the response comes from the cache, which `Cache-Control` allows.',
    schema: { type: 'integer', minimum: 0 },
  },
};

export function createOpenApiDocument(): OpenApiDocument {
  return openApiDocument({
    title: 'Meterline',
    summary: 'Billing metrics: exact usage and cost of an account.',
    description: DESCRIPTION,
    tags: [
      { name: 'Usage and cost', description: 'Usage and its cost, by dimension and time.' },
      { name: 'Access', description: 'The caller’s accounts, and API keys.' },
      {
        name: 'Alerts',
        description: 'Webhooks, messages and e-mails when usage or cost of an account passes a threshold.',
      },
      { name: 'Views', description: 'Saved views of the page.' },
      { name: 'Health', description: 'For load balancers and supervisors. Needs no credentials.' },
    ],
    operations: [
      ...USAGE_OPERATIONS,
      ...ACCESS_OPERATIONS,
      ...ALERT_OPERATIONS,
      ...VIEW_OPERATIONS,
      ...commonOperations({
        summary: 'Check that the service is ready',
        description:
          'Checks ClickHouse and Redis, with a timeout of three seconds. Returns 503 if a server is down or cannot be used, for example a ' +
          'Redis that may evict keys, and while the process is stopping. `degraded` names a server that works only partly: a full Redis ' +
          'cannot revoke keys, and while Redis is down, API keys cannot be checked, but most requests with tokens work. If the service only ' +
          'accepts API keys, a Redis that is down is a 503.',
        examples: { ready: { summary: 'ClickHouse and Redis respond', response: { status: 'ready' } } },
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
      SavedView: api.savedViewSchema,
      SavedViewArray: api.savedViewArraySchema,
      SavedViewPage: api.savedViewPageSchema,
      SaveView: api.viewBodySchema,
      Error: api.errorResponseSchema,
      ...COMMON_SCHEMAS,
    },
  });
}
