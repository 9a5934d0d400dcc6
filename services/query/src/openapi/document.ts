/** The OpenAPI document of this service, built from the schemas that check requests and that clients read answers with. */
import { API_VERSIONS } from '@meterline/catalog';
import type { OpenApiDocument } from './model.js';
import { apiPaths } from './operations.js';
import { ERROR_RESPONSES, HEADERS } from './responses.js';
import { componentSchemas } from './schemas.js';

const DESCRIPTION = `What accounts of a workload platform used, and what that cost.

**Credentials.** Send an API key or an OAuth2 access token as \`Authorization: Bearer …\` or
\`X-Svc-Authorization: Bearer …\`. A token needs the scope \`admin\`.

**Versions.** The header \`Svc-Version\` pins the behaviour; without it, ${API_VERSIONS[0]} applies.

**Figures.** Money and usage are exact decimals, written as JSON numbers of as many digits as they have. Read them as
decimals: a double keeps about 15 digits. Costs are in USD.

**Times.** RFC 3339 in UTC, and so are all buckets: hours, days, ISO weeks and months.

**Parameters** are read strictly: one that is unknown, repeated or empty is refused, so that a typo does not read as
"everything".

**Errors** are \`{code, error, message, details?, requestId}\`. Branch on \`error\`; \`message\` says how to fix the request.`;

export function createOpenApiDocument(): OpenApiDocument {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Meterline',
      version: API_VERSIONS[API_VERSIONS.length - 1] ?? API_VERSIONS[0],
      summary: 'Billing metrics: exact usage and cost of an account.',
      description: DESCRIPTION,
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The service that this document comes from' }],
    security: [{ bearer: [] }, { svcBearer: [] }],
    tags: [
      { name: 'Usage and cost', description: 'What was used, and what it cost.' },
      { name: 'Access', description: 'The caller’s accounts, and API keys.' },
      { name: 'Health', description: 'For load balancers and supervisors; needs no credentials.' },
    ],
    paths: apiPaths(),
    components: {
      schemas: componentSchemas(),
      responses: ERROR_RESPONSES,
      headers: HEADERS,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key (`mlk_…`) or an OAuth2 access token (JWT).',
        },
        svcBearer: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Svc-Authorization',
          description: 'The same, as `Bearer …`, where something before the API uses Authorization for itself.',
        },
      },
    },
  };
}
