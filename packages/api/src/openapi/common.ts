/** What the documents of all services have in common: headers, errors, health, and where tokens come from. */
import { API_VERSIONS } from '@meterline/catalog';
import { z } from 'zod';
import { METADATA_PATH } from '../auth/protected-resource.js';
import { internalError, unknownCredential } from '../http/errors.js';
import { notReady } from '../http/health.js';
import type { ErrorSketch, Header, OperationSketch } from './model.js';

export const HEADERS = {
  'X-Request-Id': {
    description: 'The id of the request: the one that it was sent with, or a new one.',
    schema: { type: 'string' },
  },
  'Svc-Version': { description: 'The version that applied.', schema: { type: 'string', enum: API_VERSIONS } },
  'Retry-After': {
    description: 'Seconds to wait before trying again.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'RateLimit-Policy': {
    description:
      'The limits that apply, as in draft-ietf-httpapi-ratelimit-headers-10: requests of the account and of the caller, and ' +
      'how many statements may run for each at once.',
    schema: { type: 'string' },
  },
  RateLimit: {
    description:
      'How many requests are left of each limit, and in how many seconds there will be more, as in the same draft.',
    schema: { type: 'string' },
  },
  'WWW-Authenticate': {
    description:
      'A challenge as in RFC 6750, section 3, with `resource_metadata` (RFC 9728) where tokens are accepted.',
    required: true,
    schema: { type: 'string' },
  },
} as const satisfies Record<string, Header>;

/** A reference to a header of the document. */
export const headerReference = (name: string) => ({ [name]: { $ref: `#/components/headers/${name}` } });

export const REQUEST_HEADERS = { ...headerReference('X-Request-Id'), ...headerReference('Svc-Version') };
export const LIMIT_HEADERS = { ...headerReference('RateLimit-Policy'), ...headerReference('RateLimit') };

/** Every operation may respond so. */
export const OTHER_RESPONSE: ErrorSketch = {
  description:
    'Any other failure: what HTTP itself forbids, such as a URL that is too long, and defects of the service.',
  error: internalError(),
};

export const COMMON_ERRORS = {
  Unauthorized: {
    description: 'No credentials, or unknown, revoked or expired ones.',
    error: unknownCredential(),
  },
  NotReady: {
    description: 'A server behind the API does not answer, or this process is stopping.',
    error: notReady([{ server: 'ClickHouse', cause: undefined }]),
  },
} as const satisfies Record<string, ErrorSketch>;

export const COMMON_SCHEMAS = {
  ProtectedResource: z.object({
    resource: z
      .string()
      .meta({ description: 'The API, for the parameter `resource` of a request for a token (RFC 8707).' }),
    authorization_servers: z.array(z.string()).optional().meta({ description: 'Who issues tokens for it.' }),
    scopes_supported: z.array(z.string()),
    bearer_methods_supported: z.array(z.string()),
    resource_name: z.string(),
    resource_documentation: z.string(),
  }),
  Health: z.object({
    status: z.enum(['ok', 'ready']),
    degraded: z.array(z.object({ server: z.string(), message: z.string() })).optional(),
  }),
};

/** @param readiness what is particular about `/readyz` */
export function commonOperations(
  readiness: Pick<OperationSketch, 'summary' | 'description' | 'examples'>,
): OperationSketch[] {
  return [
    {
      method: 'get',
      path: METADATA_PATH,
      operationId: 'getProtectedResource',
      tag: 'Access',
      summary: 'Where tokens come from',
      description:
        'For clients that are given no more than this API’s address: which server issues tokens for it, and which scopes there ' +
        'are (RFC 9728). Every 401 names this document, in the parameter `resource_metadata` of `WWW-Authenticate`. Needs no ' +
        'credentials. A service that accepts API keys only has none: 404.',
      success: { description: 'The metadata of the protected resource.', schemas: ['ProtectedResource'] },
      examples: {
        metadata: {
          summary: 'A service that takes the tokens of one server',
          response: {
            resource: 'https://billing.example.com',
            authorization_servers: ['https://auth.example.com/'],
            scopes_supported: ['admin', 'apiKey:list', 'apiKey:write'],
            bearer_methods_supported: ['header'],
            resource_name: 'Meterline',
            resource_documentation: 'https://billing.example.com/docs',
          },
        },
      },
      errors: ['NotFound'],
    },
    {
      method: 'get',
      path: '/healthz',
      operationId: 'getHealth',
      tag: 'Health',
      summary: 'Does the process run?',
      description: 'Asks no other server.',
      success: { description: 'It does.', schemas: ['Health'] },
      examples: { up: { summary: 'The process runs', response: { status: 'ok' } } },
      errors: [],
    },
    {
      ...readiness,
      method: 'get',
      path: '/readyz',
      operationId: 'getReadiness',
      tag: 'Health',
      success: { description: 'It can.', schemas: ['Health'] },
      errors: ['NotReady'],
    },
  ];
}
