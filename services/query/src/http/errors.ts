/** The failures that only queries can meet, and the reference's examples of all error responses of this service. */
import {
  ApiError,
  invalidParameters,
  notAMember,
  notFound,
  orUnavailable,
  tooMany,
  tooManyRequests,
  unavailable,
} from '@meterline/api/http/errors';
import { COMMON_ERRORS, type ErrorSketch } from '@meterline/api/openapi/common';
import { counted, type EpochMs, formatTimestamp, MAX_ALERTS, MS_PER_HOUR, type Window } from '@meterline/catalog';
import { isContentError, isStatementLimit } from '@meterline/warehouse/clickhouse/errors';

/** Longer than Meterline's own clients wait by themselves: the same query again would most often cost the same again. */
const QUERY_LIMIT_RETRY_SECONDS = 60;

export function invalidCursor(): ApiError {
  return new ApiError(
    400,
    'invalid_cursor',
    'The cursor is not one of this query; send meta.nextCursor unchanged, with the same parameters and a key of the same role, or leave it out for the first page.',
  );
}

export function cursorExpired(): ApiError {
  return new ApiError(
    400,
    'cursor_expired',
    'The cursor has expired: it is over 24 hours old, or events have changed the response that it belongs to; start again from the first page.',
  );
}

/** @param cut the ends of the window that lie within an hour */
export function partOfHourDropped(window: Window, cut: readonly (keyof Window)[], droppedBefore: EpochMs): ApiError {
  const details = cut.map((parameter) => {
    const hour = window[parameter] - (window[parameter] % MS_PER_HOUR);
    const whole = formatTimestamp(parameter === 'startTime' ? hour : hour + MS_PER_HOUR);
    return { parameter, message: `${parameter} must be the start of an hour there, such as ${whole}.` };
  });
  const messages = details.map(({ message }) => message).join(' ');
  return new ApiError(400, 'events_dropped', `${eventsKeptFrom(droppedBefore)} ${messages}`, { details });
}

export function eventsDropped(droppedBefore: EpochMs): ApiError {
  const from = formatTimestamp(droppedBefore);
  const message = `startTime must be ${from} or later.`;
  return new ApiError(400, 'events_dropped', `${eventsKeptFrom(droppedBefore)} ${message}`, {
    details: [{ parameter: 'startTime', message }],
  });
}

function eventsKeptFrom(droppedBefore: EpochMs): string {
  return `Single events are kept from ${formatTimestamp(droppedBefore)} on; of the months before there are the sums of whole hours and days.`;
}

interface FullStore {
  /** How many groups the result has whose pages were asked for. */
  readonly groups: number;
  readonly most: number;
  readonly isOfCaller: boolean;
  /** Until there is room again. */
  readonly seconds: number;
}

export function tooManyStoredGroups({ groups, most, isOfCaller, seconds }: FullStore): ApiError {
  const whose = isOfCaller ? 'you may have' : 'all callers of this account together may have';
  const limit = `This result has ${counted(groups, 'group')}, and ${whose} ${counted(most, 'group')} stored for later pages in 24 hours`;
  // There will never be room for it.
  if (groups > most) return new ApiError(400, 'too_many_groups', `${limit}; filter, or group by fewer dimensions.`);
  const minutes = counted(Math.ceil(seconds / 60), 'minute');
  const message = `${limit}; filter, group by fewer dimensions, or try again in ${minutes}.`;
  return tooMany('too_many_stored_groups', message, seconds);
}

/** The error is the same for a key that does not exist and one that the caller may not revoke. */
export function noSuchApiKey(): ApiError {
  return notFound(
    'There is no such API key that you may revoke. Admins revoke the keys of their accounts, provisioners those of any account, and every key may revoke itself.',
  );
}

export function tooManyApiKeys(): ApiError {
  const message =
    'The account has as many valid API keys as it may have; revoke those that nobody uses, and send the request again.';
  return new ApiError(409, 'too_many_api_keys', message);
}

/** The error is the same for an alert that does not exist, one of another account, and one that the caller may not know of. */
export function noSuchAlert(): ApiError {
  return notFound('There is no such alert of this account that you may see; the list of its alerts has their ids.');
}

export function noSuchDelivery(): ApiError {
  return notFound(
    'There is no such delivery of this alert; they are kept for 30 days. The list of its deliveries has their ids.',
  );
}

export function tooManyAlerts(): ApiError {
  const message = `The account has ${MAX_ALERTS} alerts already, the most that it may have; delete some, and send the request again.`;
  return new ApiError(409, 'too_many_alerts', message);
}

export function tooManyStatements(account: number, caller: number): ApiError {
  const message = `Too many queries of this account are being answered or wait already: ${account} at once are computed for an account, ${caller} of them for one caller; ask fewer at once, and wait as long as Retry-After says.`;
  return tooMany('too_many_statements', message);
}

export function overloaded(): ApiError {
  return unavailable('overloaded', 'More is being asked than can be answered at the moment; try again shortly.');
}

function queryLimitExceeded(cause: unknown): ApiError {
  const message =
    'The response would take more time or memory than a query may; narrow the window, filter, or group by fewer dimensions. If it was answered before, try again later.';
  return unavailable('query_limit_exceeded', message, cause, QUERY_LIMIT_RETRY_SECONDS);
}

function storageUnavailable(cause?: unknown): ApiError {
  return unavailable('storage_unavailable', 'Usage data cannot be read at the moment; try again shortly.', cause);
}

/** @throws ApiError `storage_unavailable` when ClickHouse does not answer */
export function orStorageUnavailable<T>(response: Promise<T>): Promise<T> {
  const errorOf = (cause: unknown) => (isStatementLimit(cause) ? queryLimitExceeded(cause) : storageUnavailable(cause));
  return orUnavailable(response, errorOf, isContentError);
}

const START_TIME =
  'startTime must be RFC 3339 in UTC (Z or +00:00), in the years 0001 to 9999, such as 2025-10-01T00:00:00Z (got "yesterday").';

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
      'once and waiting (`too_many_statements`). Or too many groups of responses for this account have been stored within 24 ' +
      'hours (`too_many_stored_groups`): a response that has more than one page is stored when its second page is asked for; ' +
      'a first page is never refused for it. Or the caller has not read its earlier responses yet (`too_many_unread_responses`).',
    error: tooManyRequests('You may send 200 requests in 4 seconds', 4),
  },
  Unavailable: {
    description:
      'A server behind the API is away (`storage_unavailable`, `auth_unavailable`), more is asked than can be answered ' +
      '(`overloaded`), too many responses are being sent (`server_busy`), or the response would take more time or memory than a ' +
      'query may (`query_limit_exceeded`). Try again after Retry-After.',
    error: storageUnavailable(),
  },
};

/** The errors of every operation that needs credentials. */
export const API_ERRORS = ['BadRequest', 'Unauthorized', 'Forbidden', 'TooMany', 'Unavailable'] as const;
