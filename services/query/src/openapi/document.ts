/** The OpenAPI document of this service, built from the schemas that check requests and that clients read answers with. */
import { componentSchemas, type OpenApiDocument, openApiDocument } from '@meterline/api';
import { API_VERSIONS } from '@meterline/catalog';
import { OPERATIONS } from './operations.js';
import { ERROR_RESPONSES } from './responses.js';
import { COMPONENTS } from './schemas.js';

const DESCRIPTION = `What accounts of a workload platform used, and what that cost.

**Credentials.** Send an API key or an OAuth2 access token as \`Authorization: Bearer …\` or
\`X-Svc-Authorization: Bearer …\`. Where \`Authorization\` has another scheme, such as a proxy's \`Basic\`, the other header
counts; two different bearer tokens are refused. A token needs the scope \`admin\`, and for keys \`apiKey:list\` or \`apiKey:write\`.

**Versions.** The header \`Svc-Version\` pins the behaviour; without it, ${API_VERSIONS[0]} applies.

**Figures.** Money and usage are exact decimals, written as JSON numbers of as many digits as they have. Read them as
decimals: a double keeps about 15 digits. Costs are in USD.

**Times.** RFC 3339 in UTC, and so are all buckets: hours, days, ISO weeks and months.

**Parameters** are read strictly: one that is unknown or empty is refused, so that a typo does not read as "everything", and
so is one given twice, but for \`groupBy\` and the filters.

**Errors** are \`{code, error, message, details?, requestId}\`. Branch on \`error\`; \`message\` says how to fix the request.`;

export function createOpenApiDocument(): OpenApiDocument {
  return openApiDocument({
    info: {
      title: 'Meterline',
      version: API_VERSIONS[API_VERSIONS.length - 1] ?? API_VERSIONS[0],
      summary: 'Billing metrics: exact usage and cost of an account.',
      description: DESCRIPTION,
    },
    tags: [
      { name: 'Usage and cost', description: 'What was used, and what it cost.' },
      { name: 'Access', description: 'The caller’s accounts, and API keys.' },
      { name: 'Health', description: 'For load balancers and supervisors; needs no credentials.' },
    ],
    operations: OPERATIONS,
    schemas: componentSchemas(COMPONENTS),
    responses: ERROR_RESPONSES,
  });
}
