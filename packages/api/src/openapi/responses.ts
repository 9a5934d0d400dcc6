/** Headers and errors that the services have in common. Each error response has an example. */
import { API_VERSIONS } from '@meterline/catalog';
import type { Header, Reference, Response } from './model.js';
import { schemaReference } from './schemas.js';

const REQUEST_ID = '7f0c1a52-3a8e-4c1d-9a2b-5d0f6e7a8b9c';

export const HEADERS = {
  'X-Request-Id': {
    description: 'The id of the request: the one that it was sent with, or a new one.',
    schema: { type: 'string' },
  },
  'Svc-Version': {
    description: 'The version that applied.',
    schema: { type: 'string', enum: API_VERSIONS },
  },
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
  ETag: {
    description: 'The tag of this answer, for `If-None-Match`: another answer has another tag.',
    required: true,
    schema: { type: 'string' },
  },
  'WWW-Authenticate': {
    description:
      'A challenge as in RFC 6750, section 3, with `resource_metadata` (RFC 9728) where tokens are accepted.',
    required: true,
    schema: { type: 'string' },
  },
} as const satisfies Record<string, Header>;

/** @param name of a header or a response among the components */
export function headerReference(name: keyof typeof HEADERS): Reference {
  return { $ref: `#/components/headers/${name}` };
}

const REQUEST_ID_HEADER = { 'X-Request-Id': headerReference('X-Request-Id') };

export const ENTITY_TAG = { ETag: headerReference('ETag') };

export const NOT_MODIFIED: Response = {
  description: 'The answer is the one that `If-None-Match` names.',
  headers: { ...REQUEST_ID_HEADER, ...ENTITY_TAG },
};

interface ErrorSketch {
  readonly code: number;
  readonly error: string;
  readonly message: string;
  readonly details?: readonly Readonly<Record<string, string>>[];
}

/** @param body without the id of the request, which is that of all examples */
export function errorResponse(description: string, headers: Response['headers'], body: ErrorSketch): Response {
  return {
    description,
    headers: { ...REQUEST_ID_HEADER, ...headers },
    content: {
      'application/json': {
        schema: schemaReference('Error'),
        examples: { [body.error]: { summary: body.message, value: { ...body, requestId: REQUEST_ID } } },
      },
    },
  };
}

export const LIMIT_HEADERS = {
  'RateLimit-Policy': headerReference('RateLimit-Policy'),
  RateLimit: headerReference('RateLimit'),
};

/** The same in every service. */
export const COMMON_RESPONSES = {
  Unauthorized: errorResponse(
    'No credentials, or unknown, revoked or expired ones.',
    { 'WWW-Authenticate': headerReference('WWW-Authenticate') },
    {
      code: 401,
      error: 'unauthorized',
      message: 'The API key or token is unknown, revoked or expired; send a valid one.',
    },
  ),
  NotReady: errorResponse(
    'A server behind the API does not answer, or this process is stopping.',
    {},
    {
      code: 503,
      error: 'not_ready',
      message: 'Not answering: ClickHouse.',
      details: [{ server: 'ClickHouse', message: 'does not answer' }],
    },
  ),
  Other: errorResponse(
    'Any other failure: what HTTP itself forbids, such as a URL that is too long, and defects of the service.',
    {},
    {
      code: 500,
      error: 'internal_error',
      message: 'Something went wrong on our side; quote the requestId to support.',
    },
  ),
} as const satisfies Record<string, Response>;

/** @param name of a response among the components */
export function responseReference(name: string): Reference {
  return { $ref: `#/components/responses/${name}` };
}
