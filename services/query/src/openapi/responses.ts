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
  'WWW-Authenticate': {
    description: 'A challenge as in RFC 6750, section 3.',
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
  'startTime must be RFC 3339 in UTC (Z or +00:00), from 1970 through 2100, such as 2025-10-01T00:00:00Z (got "yesterday").';

export const ERROR_RESPONSES = {
  BadRequest: errorResponse(
    'A parameter is missing, unknown, repeated or has a value that is not allowed (`invalid_parameter`), a cursor is not of ' +
      'this query or too old (`invalid_cursor`, `cursor_expired`), the version does not exist (`invalid_api_version`), or two ' +
      'credentials contradict each other (`conflicting_credentials`).',
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
    'The account is not the caller’s, or does not exist (`forbidden`); a member asked for something by workspace ' +
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
      message: 'There is no such API key in an account that you are an admin of.',
    },
  ),
  TooMany: errorResponse(
    'The caller has had too many groups stored for its cursors within 24 hours (`too_many_stored_groups`): an answer that has ' +
      'more than one page is stored when its first page is asked for.',
    { 'Retry-After': headerReference('Retry-After') },
    {
      code: 429,
      error: 'too_many_stored_groups',
      message:
        'This answer has 250000 groups, and the answers stored for your cursors may have 1000000 in 24 hours; filter, group by ' +
        'fewer dimensions, or try again later.',
    },
  ),
  Unavailable: errorResponse(
    'A server behind the API is away (`storage_unavailable`, `auth_unavailable`). Try again after Retry-After.',
    { 'Retry-After': headerReference('Retry-After') },
    {
      code: 503,
      error: 'storage_unavailable',
      message: 'Usage data cannot be read at the moment; try again shortly.',
    },
  ),
  NotReady: errorResponse(
    'A server behind the API does not answer.',
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
