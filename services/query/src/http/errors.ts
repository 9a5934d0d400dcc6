/**
 * Every failure that a caller may meet: status, a stable word to branch on, a sentence that says how to mend it.
 * Source: the API specification, section "Errors", and DESIGN section 6.
 */

export type ErrorWord =
  | 'auth_unavailable'
  | 'body_too_large'
  | 'conflicting_credentials'
  | 'cursor_expired'
  | 'expectation_failed'
  | 'forbidden'
  | 'headers_too_large'
  | 'insufficient_scope'
  | 'internal_error'
  | 'invalid_api_version'
  | 'invalid_body'
  | 'invalid_cursor'
  | 'invalid_parameter'
  | 'malformed_request'
  | 'malformed_url'
  | 'method_not_allowed'
  | 'method_unknown'
  | 'not_found'
  | 'not_ready'
  | 'request_timeout'
  | 'storage_unavailable'
  | 'too_many_stored_groups'
  | 'unauthorized'
  | 'url_too_long';

/** What was wrong with one parameter. */
export interface ParameterFault {
  readonly parameter: string;
  readonly message: string;
}

export interface ApiErrorOptions {
  readonly details?: readonly Readonly<Record<string, string>>[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly word: ErrorWord;
  readonly details: readonly Readonly<Record<string, string>>[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    word: ErrorWord,
    message: string,
    { details, headers = {}, cause }: ApiErrorOptions = {},
  ) {
    super(message, { cause });
    this.status = status;
    this.word = word;
    this.details = details;
    this.headers = headers;
  }
}

export interface ErrorBody {
  readonly code: number;
  readonly error: ErrorWord;
  readonly message: string;
  readonly details?: readonly Readonly<Record<string, string>>[];
  readonly requestId: string;
}

/** Only what the caller may know: never the cause. */
export function errorBody({ status, word, message, details }: ApiError, requestId: string): ErrorBody {
  return { code: status, error: word, message, ...(details && { details }), requestId };
}

const CHALLENGE = 'Bearer realm="meterline"';
const RETRY_AFTER_SECONDS = '5';
const STORED_GROUPS_RETRY_SECONDS = '3600';

/** No credentials or bad ones. The challenge follows RFC 6750, section 3. */
export function unauthorized(message: string, { presented }: { presented: boolean }): ApiError {
  const challenge = presented ? `${CHALLENGE}, error="invalid_token"` : CHALLENGE;
  return new ApiError(401, 'unauthorized', message, { headers: { 'WWW-Authenticate': challenge } });
}

export function insufficientScope(scope: string): ApiError {
  return new ApiError(403, 'insufficient_scope', `The token lacks the scope ${scope}; request one that has it.`, {
    headers: { 'WWW-Authenticate': `${CHALLENGE}, error="insufficient_scope", scope="${scope}"` },
  });
}

/** The same for an account that is not the caller's and one that does not exist. */
export function accessDenied(): ApiError {
  return new ApiError(403, 'forbidden', 'Access denied');
}

export function invalidParameters(faults: readonly ParameterFault[]): ApiError {
  return new ApiError(400, 'invalid_parameter', faults.map(({ message }) => message).join(' '), {
    details: faults.map(({ parameter, message }) => ({ parameter, message })),
  });
}

export function invalidCursor(): ApiError {
  return new ApiError(
    400,
    'invalid_cursor',
    'The cursor is not one of this query; send meta.nextCursor unchanged, with the same parameters and the same caller, or leave it out for the first page.',
  );
}

export function cursorExpired(): ApiError {
  return new ApiError(
    400,
    'cursor_expired',
    'The cursor has expired: the answer it belongs to is kept for 24 hours; start again from the first page.',
  );
}

export function tooManyStoredGroups(groups: number, most: number): ApiError {
  const message = `This answer has ${groups} groups, and the answers stored for your cursors may have ${most} in 24 hours; filter, group by fewer dimensions, or try again later.`;
  return new ApiError(429, 'too_many_stored_groups', message, {
    headers: { 'Retry-After': STORED_GROUPS_RETRY_SECONDS },
  });
}

export function notFound(message: string): ApiError {
  return new ApiError(404, 'not_found', message);
}

export function unknownPath(path: string): ApiError {
  return notFound(`There is no ${path}; the API's paths begin with /v0/accounts and /v0/service_accounts.`);
}

export function storageUnavailable(cause: unknown): ApiError {
  return unavailable('storage_unavailable', 'Usage data cannot be read at the moment; try again shortly.', cause);
}

export function authUnavailable(cause: unknown): ApiError {
  return unavailable('auth_unavailable', 'Credentials cannot be checked at the moment; try again shortly.', cause);
}

function unavailable(word: ErrorWord, message: string, cause: unknown): ApiError {
  return new ApiError(503, word, message, { cause, headers: { 'Retry-After': RETRY_AFTER_SECONDS } });
}
