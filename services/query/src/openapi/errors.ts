/** The error responses of this service, each with an example. */
import { COMMON_ERRORS, type ErrorSketch, invalidParameters, notAMember, tooManyRequests } from '@meterline/api';
import { noSuchApiKey, storageUnavailable, tooManyApiKeys } from '../http/errors.js';

const START_TIME =
  'startTime must be RFC 3339 in UTC (Z or +00:00), of the years 0001 to 9999, such as 2025-10-01T00:00:00Z (got "yesterday").';

export const ERRORS: Readonly<Record<string, ErrorSketch>> = {
  ...COMMON_ERRORS,
  BadRequest: {
    description:
      'A parameter is missing, unknown, repeated or has a value that is not allowed (`invalid_parameter`), a cursor is not of ' +
      'this query or too old (`invalid_cursor`, `cursor_expired`), single events are asked of a month that has none any more ' +
      '(`events_dropped`), the second page of a result has been asked for that has more groups than may be stored at all ' +
      '(`too_many_groups`), the body is not what the operation takes (`invalid_body`), the version does not exist ' +
      '(`invalid_api_version`), or two credentials contradict each other (`conflicting_credentials`).',
    error: invalidParameters([{ parameter: 'startTime', message: START_TIME }]),
  },
  Forbidden: {
    description:
      'The account is not the caller’s, or does not exist (`forbidden`); a member asked for something by workspace or for keys, or ' +
      'wrote an alert (`forbidden`); or the token lacks the scope (`insufficient_scope`).',
    error: notAMember(),
  },
  NotFound: {
    description: 'There is no such thing, or the caller may not know of it.',
    error: noSuchApiKey(),
  },
  Conflict: {
    description:
      'The account has as many valid API keys, or alerts, as it may have (`too_many_api_keys`, `too_many_alerts`).',
    error: tooManyApiKeys(),
  },
  TooMany: {
    description:
      'The account or the caller sends more requests than it may (`too_many_requests`), or has too many of them answered at ' +
      'once and waiting (`too_many_statements`). Or too many groups of answers for this account have been stored within 24 ' +
      'hours (`too_many_stored_groups`): an answer that has more than one page is stored when its second page is asked for; ' +
      'a first page is never refused for it. Or the caller has not read its earlier answers yet (`too_many_unread_answers`).',
    error: tooManyRequests('You may send 200 requests in 4 seconds', 4),
  },
  Unavailable: {
    description:
      'A server behind the API is away (`storage_unavailable`, `auth_unavailable`), more is asked than can be answered ' +
      '(`overloaded`), too many answers are being sent (`server_busy`), or the answer would take more time or memory than a ' +
      'query may (`query_limit_exceeded`). Try again after Retry-After.',
    error: storageUnavailable(),
  },
};

/** Those of every operation that needs credentials. */
export const API_ERRORS = ['BadRequest', 'Unauthorized', 'Forbidden', 'TooMany', 'Unavailable'] as const;
