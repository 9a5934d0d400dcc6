/** Parts that the operations share: headers, and each error response with an example. */
import { API_VERSIONS } from '@meterline/catalog';
import type { Header, Reference, Response } from './model.js';
import { reference } from './schemas.js';

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

interface ErrorSketch {
  readonly code: number;
  readonly error: string;
  readonly message: string;
  readonly details?: readonly Readonly<Record<string, string>>[];
}

function errorResponse(description: string, headers: Response['headers'], body: ErrorSketch): Response {
  return {
    description,
    headers: { ...REQUEST_ID_HEADER, ...headers },
    content: {
      'application/json': {
        schema: reference('Error'),
        examples: { [body.error]: { summary: body.message, value: { ...body, requestId: REQUEST_ID } } },
      },
    },
  };
}

const START_TIME =
  'startTime must be RFC 3339 in UTC (Z or +00:00), of the years 0001 to 9999, such as 2025-10-01T00:00:00Z (got "yesterday").';

const LIMIT_HEADERS = {
  'RateLimit-Policy': headerReference('RateLimit-Policy'),
  RateLimit: headerReference('RateLimit'),
};

export const ERROR_RESPONSES = {
  BadRequest: errorResponse(
    'A parameter is missing, unknown, repeated or has a value that is not allowed (`invalid_parameter`), a cursor is not of ' +
      'this query or too old (`invalid_cursor`, `cursor_expired`), the body is not what the operation takes (`invalid_body`), ' +
      'the version does not exist (`invalid_api_version`), or two credentials contradict each other ' +
      '(`conflicting_credentials`).',
    {},
    {
      code: 400,
      error: 'invalid_parameter',
      message: START_TIME,
      details: [{ parameter: 'startTime', message: START_TIME }],
    },
  ),
  Unauthorized: errorResponse(
    'No credentials, or unknown, revoked or expired ones.',
    { 'WWW-Authenticate': headerReference('WWW-Authenticate') },
    {
      code: 401,
      error: 'unauthorized',
      message: 'The API key or token is unknown, revoked or expired; send a valid one.',
    },
  ),
  Forbidden: errorResponse(
    'The account is not the caller’s, or does not exist (`forbidden`); a member asked for something by workspace, or for keys ' +
      '(`forbidden`); or the token lacks the scope (`insufficient_scope`).',
    {},
    { code: 403, error: 'forbidden', message: 'Access denied' },
  ),
  NotFound: errorResponse(
    'There is no such thing, or the caller may not know of it.',
    {},
    {
      code: 404,
      error: 'not_found',
      message: 'There is no such API key that you may revoke: one of an account that you are an admin of, or your own.',
    },
  ),
  Conflict: errorResponse(
    'The account has as many valid API keys as it may have (`too_many_api_keys`).',
    {},
    {
      code: 409,
      error: 'too_many_api_keys',
      message:
        'The account has as many valid API keys as it may have; revoke those that nobody uses, and send the request again.',
    },
  ),
  TooMany: errorResponse(
    'The account or the caller sends more requests than it may (`too_many_requests`), or has too many of them answered at ' +
      'once and waiting (`too_many_statements`). Or too many groups of answers for this account have been stored within 24 ' +
      'hours (`too_many_stored_groups`): an answer that has more than one page is stored when its second page is asked for; ' +
      'a first page is never refused for it. Or the caller has not read its earlier answers yet (`too_many_unread_answers`).',
    { 'Retry-After': headerReference('Retry-After'), ...LIMIT_HEADERS },
    {
      code: 429,
      error: 'too_many_requests',
      message: 'You may send 50 requests a second, and 200 at once after a rest; wait as long as Retry-After says.',
    },
  ),
  Unavailable: errorResponse(
    'A server behind the API is away (`storage_unavailable`, `auth_unavailable`), more is asked than can be answered ' +
      '(`overloaded`), too many answers are being sent (`server_busy`), or the answer would take more time or memory than a question may (`query_limit_exceeded`). Try again ' +
      'after Retry-After.',
    { 'Retry-After': headerReference('Retry-After') },
    {
      code: 503,
      error: 'storage_unavailable',
      message: 'Usage data cannot be read at the moment; try again shortly.',
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

export function errorReference(name: keyof typeof ERROR_RESPONSES): Reference {
  return { $ref: `#/components/responses/${name}` };
}
