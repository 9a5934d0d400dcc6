/** As much of OpenAPI 3.1 as the documents use, what a service says to get one, and what all of them have in common. */

import { API_VERSIONS } from '@meterline/catalog';
import { z } from 'zod';
import { METADATA_PATH } from '../auth/protected-resource.js';
import { type ApiError, internalError, unknownCredential } from '../http/errors.js';
import { notReady } from '../http/health.js';

/** JSON Schema 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;
export type Named<Value> = Readonly<Record<string, Value>>;

export interface Reference {
  readonly $ref: string;
}

export interface Example {
  readonly summary: string;
  readonly value: unknown;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly style?: 'form';
  readonly explode?: boolean;
  readonly allowEmptyValue?: boolean;
  readonly schema: JsonSchema;
  readonly examples?: Named<Example>;
  /** Meterline's own: the platform's API does not have it. */
  readonly 'x-extension'?: true;
}

export interface Header {
  readonly description: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

export interface MediaType {
  readonly schema: JsonSchema;
  readonly examples?: Named<Example>;
}
/** By media type. All examples are in JSON. */
type Content = Readonly<Record<'application/json', MediaType>> & Named<MediaType>;

export interface Response {
  readonly description: string;
  readonly headers?: Named<Header | Reference>;
  readonly content?: Content;
}

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** An example request with its response. */
export interface OperationExample {
  readonly summary: string;
  /** The values in the path, the query and the headers, by name. */
  readonly parameters?: Named<unknown>;
  /** Undefined for a request without a body. */
  readonly body?: unknown;
  /** Undefined for a response without a body. */
  readonly response?: unknown;
}

/** What is particular about an operation; the document adds what follows from it. Schemas are named as in the components. */
export interface OperationSketch {
  readonly method: Method;
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** The platform's API does not have it. */
  readonly isExtension?: true;
  readonly query?: Named<z.ZodType>;
  /** Parameters that are neither in the path nor checked by a schema in `query`, besides the version. */
  readonly otherParameters?: readonly Parameter[];
  /** The body has one of these schemas; undefined: there is no body. */
  readonly body?: readonly string[];
  /** Other formats of the body, by media type. */
  readonly otherFormats?: Named<JsonSchema>;
  readonly success: {
    readonly status?: '201' | '202' | '204';
    readonly description: string;
    /** The body has one of these schemas; empty: there is no body. */
    readonly schemas: readonly string[];
    readonly headers?: Response['headers'];
  };
  readonly otherResponses?: Named<Response | Reference>;
  readonly examples: Named<OperationExample>;
  /** Names of the service's error responses. */
  readonly errors: readonly string[];
}

/** A response that describes an error, with one as its example; its headers are those of the example. */
export interface ErrorSketch {
  readonly description: string;
  readonly error: ApiError;
  /** Other members of the body than the error's, and the schema of a body that has some. */
  readonly members?: JsonSchema;
  readonly schema?: JsonSchema;
}

export interface DocumentSketch {
  readonly title: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly operations: readonly OperationSketch[];
  readonly schemas: Named<z.core.$ZodType>;
  readonly errors: Named<ErrorSketch>;
  /** Headers that no error response has, and not every other response. */
  readonly headers?: Named<Header>;
}

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
      'The limits that apply, as in draft-ietf-httpapi-ratelimit-headers-10: requests of the account and of the caller.',
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
