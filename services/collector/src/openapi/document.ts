/** The OpenAPI document of the collector. */
import { COMMON_RESPONSES, componentSchemas, type OpenApiDocument, openApiDocument } from '@meterline/api';
import { API_VERSIONS } from '@meterline/catalog';
import { OPERATIONS } from './operations.js';
import { RESPONSES } from './responses.js';
import { COMPONENTS } from './schemas.js';

const DESCRIPTION = `The door for usage events.

**Credentials.** Send an API key with the role \`emitter\` as \`Authorization: Bearer …\` or \`X-Svc-Authorization: Bearer …\`. It may
send events of one account, and read nothing. A key that may read may not send. An OAuth2 access token needs the scope \`admin\`, and
its subject must be an admin of the account.

**Retries.** Every answer but a 202 means: not accepted, or not known to be. Send the same events again, with the same ids, as often
as it takes, for years if need be: an event counts once for its id. So there is nothing for the header \`Idempotency-Key\` to do; it is
ignored.

**Ids.** An \`eventId\` that is no UUID becomes one: version 5, of the account and the id. The same id always becomes the same UUID. So
do \`source\` and \`id\` of a CloudEvent.

**Errors** are \`{code, error, message, details?, requestId}\`. Branch on \`error\`; \`message\` says how to fix the request.`;

export function createOpenApiDocument(): OpenApiDocument {
  return openApiDocument({
    info: {
      title: 'Meterline collector',
      version: API_VERSIONS[API_VERSIONS.length - 1] ?? API_VERSIONS[0],
      summary: 'Takes usage events, and answers when they are durable.',
      description: DESCRIPTION,
    },
    tags: [
      { name: 'Events', description: 'What was used.' },
      { name: 'Access', description: 'Where tokens come from.' },
      { name: 'Health', description: 'For load balancers and supervisors; needs no credentials.' },
    ],
    operations: OPERATIONS,
    schemas: componentSchemas(COMPONENTS),
    responses: { ...RESPONSES, ...COMMON_RESPONSES },
  });
}
