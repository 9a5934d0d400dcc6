/** Defines the errors that only the query service returns, and the error responses in its API reference. */
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
import {
  counted,
  type EpochMs,
  formatTimestamp,
  MAX_ALERTS,
  MAX_EVENTS_BY_COST,
  MAX_VIEWS,
  MS_PER_HOUR,
  type Window,
} from '@meterline/catalog';
import { isContentError, isStatementLimit } from '@meterline/warehouse/clickhouse/errors';

/** Longer than `@meterline/client` waits, so that the client does not retry: the same query would most likely fail again. */
const QUERY_LIMIT_RETRY_SECONDS = 60;

export function invalidCursor(): ApiError {
  return new ApiError(
    400,
    'invalid_cursor',
    'The cursor does not belong to this query; send meta.nextCursor unchanged, with the same parameters and a key of the same role, or omit it for the first page.',
  );
}

export function cursorExpired(): ApiError {
  return new ApiError(
    400,
    'cursor_expired',
    'The cursor has expired: it is over 24 hours old, or events have changed the result; start again from the first page.',
  );
}

/** @param cut the ends of the window that are not the start of an hour */
export function partOfHourDropped(window: Window, cut: readonly (keyof Window)[], droppedBefore: EpochMs): ApiError {
  const details = cut.map((parameter) => {
    const hour = window[parameter] - (window[parameter] % MS_PER_HOUR);
    const whole = formatTimestamp(parameter === 'startTime' ? hour : hour + MS_PER_HOUR);
    return { parameter, message: `For earlier times, ${parameter} must be the start of an hour, such as ${whole}.` };
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

export function tooManyEventsByCost(): ApiError {
  const message = `orderBy must be timestamp, or the window shorter: the account has more than ${counted(MAX_EVENTS_BY_COST, 'stored revision')} of events in its hours, too many to sort by cost.`;
  return invalidParameters([{ parameter: 'orderBy', message }]);
}

function eventsKeptFrom(droppedBefore: EpochMs): string {
  return `Events are kept from ${formatTimestamp(droppedBefore)} on; earlier months only have totals of whole hours and days.`;
}

interface FullStore {
  readonly groups: number;
  readonly most: number;
  readonly isOfCaller: boolean;
  readonly seconds: number;
}

export function tooManyStoredGroups({ groups, most, isOfCaller, seconds }: FullStore): ApiError {
  const whose = isOfCaller ? 'you may have' : 'all callers of this account together may have';
  const limit = `This result has ${counted(groups, 'group')}, and ${whose} ${counted(most, 'group')} stored for later pages in 24 hours`;
  // Return 400, because a retry cannot succeed.
  if (groups > most) return new ApiError(400, 'too_many_groups', `${limit}; filter, or group by fewer dimensions.`);
  const minutes = counted(Math.ceil(seconds / 60), 'minute');
  const message = `${limit}; filter, group by fewer dimensions, or try again in ${minutes}.`;
  return tooMany('too_many_stored_groups', message, seconds);
}

export function noSuchApiKey(): ApiError {
  return notFound(
    'The API key does not exist, or you may not revoke it. Admins may revoke the keys of their accounts, provisioners the keys of any account, and every key itself.',
  );
}

export function tooManyApiKeys(): ApiError {
  const message =
    'The account already has the maximum number of valid API keys; revoke unused keys, and send the request again.';
  return new ApiError(409, 'too_many_api_keys', message);
}

/** The error is the same if the alert does not exist, belongs to another account or is hidden from the caller. */
export function noSuchAlert(): ApiError {
  return notFound('The account has no such alert that you may see; list its alerts to find their IDs.');
}

/** The error is the same if the view does not exist and if it is hidden from the caller. */
export function noSuchView(): ApiError {
  return notFound('The account has no such view that you may see; list its views to find their names.');
}

export function tooManyViews(): ApiError {
  const message = `The account already has ${MAX_VIEWS} saved views, the maximum; delete some views, and send the request again.`;
  return new ApiError(409, 'too_many_views', message);
}

export function noSuchDelivery(): ApiError {
  return notFound(
    'The alert has no such delivery; deliveries are kept for 30 days. List its deliveries to find their IDs.',
  );
}

export function tooManyAlerts(): ApiError {
  const message = `The account already has ${MAX_ALERTS} alerts, the maximum; delete some alerts, and send the request again.`;
  return new ApiError(409, 'too_many_alerts', message);
}

export function tooManyStatements(account: number, caller: number): ApiError {
  const message = `Too many queries of this account are running or waiting: at most ${account} run at once for an account, and ${caller} for one caller; send fewer at once, and retry after the seconds in Retry-After.`;
  return tooMany('too_many_statements', message);
}

export function overloaded(): ApiError {
  return unavailable(
    'overloaded',
    'The service has more requests than it can process at the moment; try again shortly.',
  );
}

function queryLimitExceeded(cause: unknown): ApiError {
  const message =
    'The query would take more time or memory than allowed; narrow the window, filter, or group by fewer dimensions. If the same query worked before, try again later.';
  return unavailable('query_limit_exceeded', message, cause, QUERY_LIMIT_RETRY_SECONDS);
}

function storageUnavailable(cause?: unknown): ApiError {
  return unavailable('storage_unavailable', 'Usage data cannot be read at the moment; try again shortly.', cause);
}

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
      'One of: a parameter is missing, unknown, repeated or invalid (`invalid_parameter`); a cursor belongs to another query or has ' +
      'expired (`invalid_cursor`, `cursor_expired`); the request needs events of a month whose events were dropped ' +
      '(`events_dropped`); a second page was requested, but the result has more groups than can be stored (`too_many_groups`); ' +
      'the body is invalid (`invalid_body`); the API version does not exist (`invalid_api_version`); the credentials contradict ' +
      'each other (`conflicting_credentials`).',
    error: invalidParameters([{ parameter: 'startTime', message: START_TIME }]),
  },
  Forbidden: {
    description:
      'The account does not exist, or the caller has no access to it (`forbidden`); the request needs an admin, because it uses ' +
      'workspaces or keys or changes an alert or a saved view (`forbidden`); or the token lacks the scope (`insufficient_scope`).',
    error: notAMember(),
  },
  NotFound: {
    description: 'The resource does not exist, or the caller may not see it.',
    error: noSuchApiKey(),
  },
  Conflict: {
    description:
      'The account has the maximum number of valid API keys, alerts or saved views (`too_many_api_keys`, `too_many_alerts`, ' +
      '`too_many_views`).',
    error: tooManyApiKeys(),
  },
  TooMany: {
    description:
      'One of: the account or the caller sends too many requests (`too_many_requests`), or too many of its queries run and wait at ' +
      'once (`too_many_statements`); too many groups of results were stored for the account or the caller within 24 hours ' +
      '(`too_many_stored_groups`), which happens only for second pages, because a result is stored when its second page is ' +
      'requested; the clients of the account have not read earlier responses yet (`too_many_unread_responses`).',
    error: tooManyRequests('You may send 200 requests in 4 seconds', 4),
  },
  Unavailable: {
    description:
      'A server behind the API is down (`storage_unavailable`, `auth_unavailable`), the service is overloaded (`overloaded`), too ' +
      'many responses are being sent (`server_busy`), or the query would take more time or memory than allowed ' +
      '(`query_limit_exceeded`). Retry after the seconds in `Retry-After`.',
    error: storageUnavailable(),
  },
};

export const API_ERRORS = ['BadRequest', 'Unauthorized', 'Forbidden', 'TooMany', 'Unavailable'] as const;
