/** Types for the parts of OpenAPI 3.1 that the documents use, and definitions that all documents share. */
import { API_VERSIONS } from '@meterline/catalog';
import { z } from 'zod';
import { METADATA_PATH } from '../auth/protected-resource.js';
import { type ApiError, internalError, unknownCredential } from '../http/errors.js';
import { notReady } from '../http/health.js';

/** A schema in JSON Schema 2020-12. */
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
  /** Marks a parameter that Meterline adds to the API that the platform has specified. */
  readonly 'x-extension'?: true;
}

export interface Header {
  readonly description: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

export interface MediaType {
  readonly schema: JsonSchema;
  readonly example?: unknown;
  readonly examples?: Named<Example>;
}
type Content = Readonly<Record<'application/json', MediaType>> & Named<MediaType>;

export interface Response {
  readonly description: string;
  readonly headers?: Named<Header | Reference>;
  readonly content?: Content;
}

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

export interface OperationExample {
  readonly summary: string;
  readonly parameters?: Named<unknown>;
  readonly body?: unknown;
  readonly response?: unknown;
}

/** Describes one operation of the API. document.ts adds the parts that all operations share. Schemas are given as their names in the components. */
export interface OperationSketch {
  readonly method: Method;
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly isExtension?: true;
  readonly query?: Named<z.ZodType>;
  /** All parameters except those in the path, those in `query`, and the API version. */
  readonly otherParameters?: readonly Parameter[];
  /** The body has one of these schemas. If undefined, the operation has no body. */
  readonly body?: readonly string[];
  readonly otherFormats?: Named<MediaType>;
  readonly success: {
    readonly status?: '201' | '202' | '204';
    readonly description: string;
    /** The body has one of these schemas. If the list is empty, the response has no body. */
    readonly schemas: readonly string[];
    readonly headers?: Response['headers'];
  };
  readonly otherResponses?: Named<Response | Reference>;
  readonly examples: Named<OperationExample>;
  readonly errors: readonly string[];
}

export interface ErrorSketch {
  readonly description: string;
  readonly error: ApiError;
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
  readonly headers?: Named<Header>;
}

export const HEADERS = {
  'X-Request-Id': {
    description: 'The ID of the request: the value that the client sent, or a new ID.',
    schema: { type: 'string' },
  },
  'Svc-Version': { description: 'The API version of the response.', schema: { type: 'string', enum: API_VERSIONS } },
  'Retry-After': {
    description: 'Seconds to wait before a retry.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'RateLimit-Policy': {
    description:
      'The rate limits of the account and of the caller, in the format of draft-ietf-httpapi-ratelimit-headers-10.',
    schema: { type: 'string' },
  },
  RateLimit: {
    description:
      'The remaining requests of each rate limit, and the seconds until the limit is reset, in the format of the same draft.',
    schema: { type: 'string' },
  },
  'WWW-Authenticate': {
    description:
      'A challenge as in RFC 6750, section 3, with `resource_metadata` (RFC 9728) if the service accepts tokens.',
    required: true,
    schema: { type: 'string' },
  },
} as const satisfies Record<string, Header>;

export const headerReference = (name: string) => ({ [name]: { $ref: `#/components/headers/${name}` } });

export const REQUEST_HEADERS = { ...headerReference('X-Request-Id'), ...headerReference('Svc-Version') };
export const LIMIT_HEADERS = { ...headerReference('RateLimit-Policy'), ...headerReference('RateLimit') };

export const OTHER_RESPONSE: ErrorSketch = {
  description:
    'Any other error: invalid HTTP requests, for example with a URL that is too long, and bugs of the service.',
  error: internalError(),
};

export const COMMON_ERRORS = {
  Unauthorized: {
    description: 'The credentials are missing, unknown, revoked or expired.',
    error: unknownCredential(),
  },
  NotReady: {
    description: 'A server behind the API does not respond or cannot be used, or this process is stopping.',
    error: notReady([{ server: 'ClickHouse', cause: undefined }]),
  },
} as const satisfies Record<string, ErrorSketch>;

export const COMMON_SCHEMAS = {
  ProtectedResource: z.object({
    resource: z
      .string()
      .meta({ description: 'The identifier of the API, for the parameter `resource` of a token request (RFC 8707).' }),
    authorization_servers: z.array(z.string()).optional().meta({ description: 'The issuers of tokens for the API.' }),
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

/** Returns the operations that every service has. @param readiness the parts of `/readyz` that differ between services */
export function commonOperations(
  readiness: Pick<OperationSketch, 'summary' | 'description' | 'examples'>,
): OperationSketch[] {
  return [
    {
      method: 'get',
      path: METADATA_PATH,
      operationId: 'getProtectedResource',
      tag: 'Access',
      summary: 'Get metadata about tokens',
      description:
        'For clients that only know the address of this API: the server that issues tokens, and the scopes of the API (RFC 9728). ' +
        'Every 401 links to this document in the parameter `resource_metadata` of `WWW-Authenticate`. Needs no credentials. A ' +
        'service that only accepts API keys returns 404.',
      success: { description: 'The metadata of the protected resource.', schemas: ['ProtectedResource'] },
      examples: {
        metadata: {
          summary: 'A service that accepts the tokens of one server',
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
      summary: 'Check that the process runs',
      description: 'Does not depend on other servers.',
      success: { description: 'The process runs.', schemas: ['Health'] },
      examples: { up: { summary: 'The process runs', response: { status: 'ok' } } },
      errors: [],
    },
    {
      ...readiness,
      method: 'get',
      path: '/readyz',
      operationId: 'getReadiness',
      tag: 'Health',
      success: { description: 'The service is ready.', schemas: ['Health'] },
      errors: ['NotReady'],
    },
  ];
}
