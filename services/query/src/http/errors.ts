/**
 * Every failure that a caller can meet: the HTTP status, a stable code to branch on, and a sentence that says how to fix it.
 * In the body, whose members are public, the status is `code` and the code is `error`; everywhere else they are `status`
 * and `code`. Source: the API specification, section "Errors", and DESIGN section 6.
 */
import { isContentError } from '@meterline/warehouse';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import { ZodError, z } from 'zod';
import { requestIdOf } from './request-log.js';

/** Public and stable: the member `error` of the body. */
export type ErrorCode =
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
  readonly code: ErrorCode;
  readonly details: readonly Readonly<Record<string, string>>[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: ErrorCode,
    message: string,
    { details, headers = {}, cause }: ApiErrorOptions = {},
  ) {
    super(message, { cause });
    this.status = status;
    this.code = code;
    this.details = details;
    this.headers = headers;
  }
}

export interface ErrorBody {
  readonly code: number;
  readonly error: ErrorCode;
  readonly message: string;
  readonly details?: readonly Readonly<Record<string, string>>[];
  readonly requestId: string;
}

/** Only what the caller may know: never the cause. */
export function errorBody({ status, code, message, details }: ApiError, requestId: string): ErrorBody {
  return { code: status, error: code, message, ...(details && { details }), requestId };
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

function unavailable(code: ErrorCode, message: string, cause: unknown): ApiError {
  return new ApiError(503, code, message, { cause, headers: { 'Retry-After': RETRY_AFTER_SECONDS } });
}

/** @throws ApiError `storage_unavailable` when ClickHouse does not answer */
export function orStorageUnavailable<T>(answer: Promise<T>): Promise<T> {
  return orUnavailable(answer, storageUnavailable);
}

/** @throws ApiError `auth_unavailable` when Redis does not answer */
export function orAuthUnavailable<T>(answer: Promise<T>): Promise<T> {
  return orUnavailable(answer, authUnavailable);
}

/** An outage of a server behind the API is 503, which the caller can wait out; anything else is a bug, which is ours. */
async function orUnavailable<T>(answer: Promise<T>, unavailable: (cause: unknown) => ApiError): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    // The server did answer, but with something that our statements and records never give.
    if (error instanceof ZodError || isContentError(error)) throw error;
    throw unavailable(error);
  }
}

/** What Express and its body parser throw. Source: the npm package http-errors. */
const httpError = z.object({ status: z.int().min(400).max(499), message: z.string() });

export const routeNotFound: RequestHandler = (request) => {
  throw unknownPath(request.path);
};

export function methodNotAllowed(allowed: string): RequestHandler {
  return (request) => {
    throw new ApiError(405, 'method_not_allowed', `${request.method} is not allowed here; use ${allowed}.`, {
      headers: { Allow: allowed },
    });
  };
}

// Express recognises an error handler by its four parameters.
export const answerError: ErrorRequestHandler = (thrown: unknown, request, response, _next) => {
  const error = toApiError(thrown);
  // The request log writes it down together with the request it belongs to.
  if (error.status >= 500) response.err = error;
  if (response.headersSent) {
    request.socket.destroy();
    return;
  }
  response
    .status(error.status)
    .set(error.headers)
    .json(errorBody(error, requestIdOf(request)));
};

function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const known = httpError.safeParse(thrown);
  if (!known.success) {
    return new ApiError(500, 'internal_error', 'Something went wrong on our side; quote the requestId to support.', {
      cause: thrown,
    });
  }
  const { status, message } = known.data;
  if (status === 413)
    return new ApiError(413, 'body_too_large', 'The body is over 16 KiB; these operations need none.');
  return new ApiError(status, 'invalid_body', `The body cannot be read (${message}); these operations need none.`);
}
