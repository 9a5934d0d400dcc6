/** Each error response of this service, with an example. */
import {
  COMMON_RESPONSES,
  errorResponse,
  headerReference,
  LIMIT_HEADERS,
  type OpenApiResponse,
  type Reference,
  responseReference,
} from '@meterline/api';

const START_TIME =
  'startTime must be RFC 3339 in UTC (Z or +00:00), of the years 0001 to 9999, such as 2025-10-01T00:00:00Z (got "yesterday").';

export const ERROR_RESPONSES = {
  BadRequest: errorResponse(
    'A parameter is missing, unknown, repeated or has a value that is not allowed (`invalid_parameter`), a cursor is not of ' +
      'this query or too old (`invalid_cursor`, `cursor_expired`), single events are asked of a month that has none any more ' +
      '(`events_dropped`), the body is not what the operation takes (`invalid_body`), ' +
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
  Unauthorized: COMMON_RESPONSES.Unauthorized,
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
  NotReady: COMMON_RESPONSES.NotReady,
  Other: COMMON_RESPONSES.Other,
} as const satisfies Record<string, OpenApiResponse>;

export function errorReference(name: keyof typeof ERROR_RESPONSES): Reference {
  return responseReference(name);
}
