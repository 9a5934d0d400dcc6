/** Where tokens come from, in the document of each service. What is served is in auth/protected-resource.ts. */
import { z } from 'zod';
import { METADATA_PATH } from '../auth/protected-resource.js';
import type { OperationSketch } from './document.js';
import type { Examples } from './model.js';
import { schemaReference } from './schemas.js';

/** For the document's schemas, as `ProtectedResource`. */
export const protectedResourceSchema = z.object({
  resource: z
    .string()
    .meta({ description: 'The API, for the parameter `resource` of a request for a token (RFC 8707).' }),
  authorization_servers: z.array(z.string()).optional().meta({ description: 'Who issues tokens for it.' }),
  scopes_supported: z.array(z.string()),
  bearer_methods_supported: z.array(z.string()),
  resource_name: z.string(),
  resource_documentation: z.string(),
});

const EXAMPLES: Examples = {
  metadata: {
    summary: 'Of a service that takes the tokens of one server',
    parameters: {},
    answer: {
      resource: 'https://billing.example.com',
      authorization_servers: ['https://auth.example.com/'],
      scopes_supported: ['admin', 'apiKey:list', 'apiKey:write'],
      bearer_methods_supported: ['header'],
      resource_name: 'Meterline',
      resource_documentation: 'https://billing.example.com/docs',
    },
  },
};

/** @param errors with the 404 of a service that accepts no tokens */
export function resourceMetadataOperation(errors: OperationSketch['errors']): OperationSketch {
  return {
    path: METADATA_PATH,
    method: 'get',
    operationId: 'getProtectedResource',
    tag: 'Access',
    summary: 'Where tokens come from',
    description:
      'For clients that are given no more than this API’s address: which server issues tokens for it, and which scopes there ' +
      'are (RFC 9728). Every 401 names this document, in the parameter `resource_metadata` of `WWW-Authenticate`. Needs no ' +
      'credentials. A service that accepts API keys only has none: 404.',
    success: { description: 'The metadata of the protected resource.', schema: schemaReference('ProtectedResource') },
    examples: EXAMPLES,
    errors,
  };
}
