/**
 * Defines the errors of the API and sends them as responses. An error has an HTTP status, a stable code for programs, and a message that
 * explains how to fix the request. Source: docs/api-contract.md, "Errors".
 */
import type { ServerResponse } from 'node:http';
import { property } from '@meterline/catalog/plain';
import type { ErrorRequestHandler, Request, RequestHandler } from 'express';
import { ZodError } from 'zod';
import { noteFailure, requestIdOf } from './request-record.js';

export type ErrorCode =
  | 'auth_unavailable'
  | 'body_too_large'
  | 'conflicting_credentials'
  | 'cursor_expired'
  | 'events_dropped'
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
  | 'no_event_accepted'
  | 'not_found'
  | 'not_ready'
  | 'overloaded'
  | 'precondition_failed'
  | 'query_limit_exceeded'
  | 'queue_unavailable'
  | 'request_timeout'
  | 'server_busy'
  | 'storage_unavailable'
  | 'too_many_alerts'
  | 'too_many_views'
  | 'too_many_api_keys'
  | 'too_many_events'
  | 'too_many_requests'
  | 'too_many_statements'
  | 'too_many_groups'
  | 'too_many_stored_groups'
  | 'too_many_unread_responses'
  | 'too_many_bytes_in_flight'
  | 'unauthorized'
  | 'unsupported_media_type'
  | 'url_too_long';

export interface ParameterProblem {
  readonly parameter: string;
  readonly message: string;
}

type Details = readonly Readonly<Record<string, string>>[];

export interface ApiErrorOptions {
  readonly details?: Details;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: ErrorCode;
  readonly details: Details | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    const { details, headers = {}, cause } = options;
    super(message, { cause });
    this.status = status;
    this.code = code;
    this.details = details;
    this.headers = headers;
  }
}

const CHALLENGE = 'Bearer realm="meterline"';
const RETRY_AFTER_SECONDS = 5;

/** The format of the header WWW-Authenticate follows RFC 6750, section 3. `presented` is whether the request had credentials. */
export function unauthorized(message: string, { presented }: { presented: boolean }): ApiError {
  const challenge = presented ? `${CHALLENGE}, error="invalid_token"` : CHALLENGE;
  return new ApiError(401, 'unauthorized', message, { headers: { 'WWW-Authenticate': challenge } });
}

export function unknownCredential(): ApiError {
  return unauthorized('The API key or token is unknown, revoked or expired; send a valid one.', { presented: true });
}

export function insufficientScope(scope: string): ApiError {
  return new ApiError(403, 'insufficient_scope', `The token lacks the scope ${scope}; request one that has it.`, {
    headers: { 'WWW-Authenticate': `${CHALLENGE}, error="insufficient_scope", scope="${scope}"` },
  });
}

/**
 * The API contract defines the message (docs/api-contract.md, "Errors"), so the reason is sent in `details`.
 * @param reason the possible causes, and how to fix them
 */
function accessDenied(reason: string): ApiError {
  return new ApiError(403, 'forbidden', 'Access denied', { details: [{ message: reason }] });
}

/** The error is the same if the account does not exist, so that callers cannot find out which accounts exist. */
export function notAMember(): ApiError {
  return accessDenied(
    'The account does not exist, or your key or token has no access to it. GET /v0/accounts lists the accounts that you may read.',
  );
}

export function adminsOnly(): ApiError {
  return accessDenied(
    'Only an admin of the account may do this, and only an admin may group or filter by workspace. Use the key or token of an admin.',
  );
}

/** Limits the size of a response. Every three bytes of a query string such as `aa&ab&ac` add an error, and thus a sentence to the message. */
const MAX_PROBLEMS = 10;

export const invalidParameters = (problems: readonly ParameterProblem[]) =>
  invalidRequest('invalid_parameter', problems);

export const invalidBody = (problems: readonly ParameterProblem[]) => invalidRequest('invalid_body', problems);

function invalidRequest(code: ErrorCode, problems: readonly ParameterProblem[]): ApiError {
  const shown = problems.slice(0, MAX_PROBLEMS);
  const others = problems.length - shown.length;
  const sentences = shown.map(({ message }) => message);
  if (others > 0) sentences.push(`There are ${others} more errors; fix these first.`);
  return new ApiError(400, code, sentences.join(' '), {
    details: shown.map(({ parameter, message }) => ({ parameter, message })),
  });
}

/** @param limit a description of the limit, without a final period */
export function tooManyRequests(limit: string, seconds: number): ApiError {
  return tooMany('too_many_requests', `${limit}; retry after the seconds in Retry-After.`, seconds);
}

export function tooMany(code: ErrorCode, message: string, seconds = RETRY_AFTER_SECONDS): ApiError {
  return new ApiError(429, code, message, { headers: { 'Retry-After': String(seconds) } });
}

export function notFound(message: string): ApiError {
  return new ApiError(404, 'not_found', message);
}

export function unknownPath(path: string): ApiError {
  const bare = path.replace(/\/+$/, '');
  const advice =
    bare === path || bare === ''
      ? '/docs lists the operations of this service'
      : `paths of the API do not end with a slash, try ${bare}`;
  return notFound(`There is no ${path}; ${advice}.`);
}

export function authUnavailable(cause: unknown): ApiError {
  return unavailable('auth_unavailable', 'Credentials cannot be checked at the moment; try again shortly.', cause);
}

export function unavailable(
  code: ErrorCode,
  message: string,
  cause?: unknown,
  seconds = RETRY_AFTER_SECONDS,
): ApiError {
  return new ApiError(503, code, message, { cause, headers: { 'Retry-After': String(seconds) } });
}

export function orAuthUnavailable<T>(result: Promise<T>): Promise<T> {
  return orUnavailable(result, authUnavailable);
}

/**
 * Converts an outage of a server behind the API to a 503, which callers can retry. Bugs are rethrown unchanged, and become a 500.
 * @param errorOf returns the error for an outage
 * @param isDefect returns true if the server's error means that Meterline has a bug, such as an invalid statement
 */
export async function orUnavailable<T>(
  result: Promise<T>,
  errorOf: (cause: unknown) => ApiError,
  isDefect: (error: unknown) => boolean = () => false,
): Promise<T> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof ApiError || error instanceof ClientGone) throw error;
    // A ZodError means that the server returned data that Meterline never writes. This is a bug, and a retry would not help.
    if (error instanceof ZodError || isDefect(error)) throw error;
    throw errorOf(error);
  }
}

export class ClientGone extends Error {
  override readonly name = 'ClientGone';

  constructor() {
    super('the client closed the connection before the response was sent');
  }
}

/** Returns a signal that is aborted if the client closes the connection before the response is sent. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.closed) gone.abort(new ClientGone());
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(new ClientGone());
  });
  return gone.signal;
}

export function internalError(cause?: unknown): ApiError {
  const message = 'Something went wrong on our side; quote the requestId to support.';
  return new ApiError(500, 'internal_error', message, { cause });
}

/** Returns the public part of an error. It never contains the cause. */
export function errorBody({ status, code, message, details }: ApiError, requestId: string) {
  return { code: status, error: code, message, ...(details && { details }), requestId };
}

export const routeNotFound: RequestHandler = (request) => {
  throw unknownPath(request.path);
};

export function methodNotAllowed(allowed: string, elsewhere?: string): RequestHandler {
  return ({ method }) => {
    throw disallowedMethod(method, allowed, elsewhere);
  };
}

export function disallowedMethod(method: string, allowed: string, elsewhere = ''): ApiError {
  const message = `${method} is not allowed here; use ${allowed}. ${elsewhere}`.trimEnd();
  return new ApiError(405, 'method_not_allowed', message, { headers: { Allow: allowed } });
}

/** Headers that describe the content of a file or response. An error response removes them. */
const CONTENT_HEADERS = ['Content-Type', 'ETag', 'Last-Modified'];

/** @param metadataUrl returns the URL of the document about tokens (RFC 9728, section 5.1), or undefined if there is no such document */
export function respondWithError(metadataUrl: (request: Request) => string | undefined): ErrorRequestHandler {
  // Express recognizes an error handler by its four parameters.
  return (thrown: unknown, request, response, _next) => {
    if (thrown instanceof ClientGone) return;
    const error = toApiError(thrown, request.path);
    if (error.status >= 500) noteFailure(request, error);
    if (response.headersSent) {
      request.socket.destroy();
      return;
    }
    for (const name of CONTENT_HEADERS) response.removeHeader(name);
    response.status(error.status).set({ 'Cache-Control': 'private, no-store', ...error.headers });
    const challenge = error.headers['WWW-Authenticate'];
    const url = metadataUrl(request);
    if (challenge !== undefined && url !== undefined) {
      response.set('WWW-Authenticate', `${challenge}, resource_metadata="${url}"`);
    }
    response.json(errorBody(error, requestIdOf(request)));
  };
}

function toApiError(thrown: unknown, path: string): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const status = property(thrown, 'status');
  if (!(thrown instanceof Error) || typeof status !== 'number' || status < 400 || status > 499) {
    return internalError(thrown);
  }
  // Only errors of the body parser have a property `type`. Source: the npm packages raw-body and body-parser.
  if (property(thrown, 'type') === undefined) return fileError(status, path);
  if (status === 413) {
    return new ApiError(413, 'body_too_large', 'The body is over 16 KiB; no operation needs a larger body.');
  }
  const advice = 'send it without Content-Encoding, or omit it if the operation takes none';
  return new ApiError(status, 'invalid_body', `The body cannot be read (${thrown.message}); ${advice}.`);
}

/** Converts an error of the npm package `send`, which serves files. Every error except 412 means that there is no such file, and becomes a 404. */
function fileError(status: number, path: string): ApiError {
  if (status !== 412) return unknownPath(path);
  // RFC 9110, section 13.1, defines the headers that cause a 412.
  const message = 'The file has changed since If-Match or If-Unmodified-Since; send the request without the header.';
  return new ApiError(412, 'precondition_failed', message);
}
