/**
 * A failure that a caller can meet: the HTTP status, a stable code to branch on, and a sentence that says how to fix it; and how it is
 * answered. Source: the API specification, section "Errors", and DESIGN section 6.
 */
import type { ServerResponse } from 'node:http';
import type { ErrorRequestHandler, Request, RequestHandler } from 'express';
import { ZodError, z } from 'zod';
import { noteFailure, requestIdOf } from './request-record.js';

/** Public and stable: the member `error` of the body. */
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

/** What was wrong with one parameter, or with one member of a body. */
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
/** For what is over soon. */
const RETRY_AFTER_SECONDS = 5;

/** No credentials or bad ones. The challenge follows RFC 6750, section 3. */
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

/** The message is the specification's; @param reason why that may be, and what to do */
function accessDenied(reason: string): ApiError {
  return new ApiError(403, 'forbidden', 'Access denied', { details: [{ message: reason }] });
}

/** An account that is not the caller's and one that does not exist get the same error. */
export function notAMember(): ApiError {
  return accessDenied(
    'There is no such account, or your key or token is not one of it. GET /v0/accounts lists the accounts that you may read.',
  );
}

export function adminsOnly(): ApiError {
  return accessDenied(
    'Only an admin of the account may do this, and a member may not group or filter by workspace. Use the key or token of an admin.',
  );
}

/** A response must not be many times as large as its request, and three bytes of a query string can be an error. */
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

/** @param limit a sentence that says what is allowed */
export function tooManyRequests(limit: string, seconds: number): ApiError {
  return tooMany('too_many_requests', `${limit}; wait as long as Retry-After says.`, seconds);
}

/** 429, to be tried again after `Retry-After`. */
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
      : `the API's paths do not end with a slash, try ${bare}`;
  return notFound(`There is no ${path}; ${advice}.`);
}

export function authUnavailable(cause: unknown): ApiError {
  return unavailable('auth_unavailable', 'Credentials cannot be checked at the moment; try again shortly.', cause);
}

/** 503, to be tried again after `Retry-After`. */
export function unavailable(
  code: ErrorCode,
  message: string,
  cause?: unknown,
  seconds = RETRY_AFTER_SECONDS,
): ApiError {
  return new ApiError(503, code, message, { cause, headers: { 'Retry-After': String(seconds) } });
}

/** @throws ApiError `auth_unavailable` when Redis does not answer */
export function orAuthUnavailable<T>(result: Promise<T>): Promise<T> {
  return orUnavailable(result, authUnavailable);
}

/**
 * An outage of a server behind the API is 503, which the caller can wait out; anything else is a bug, which is ours.
 * @param errorOf what to answer when the server does not
 * @param isDefect whether the server did answer, with something that it never says if we ask as we should
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
    // The server did answer, but with something that our records never are.
    if (error instanceof ZodError || isDefect(error)) throw error;
    throw errorOf(error);
  }
}

/** The client closed the connection before it had its response, so nobody reads one. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';

  constructor() {
    super('the client closed the connection before it had its response');
  }
}

/** Aborted when the client closes the connection before it has its response. */
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

/** Only what the caller may know: never the cause. */
export function errorBody({ status, code, message, details }: ApiError, requestId: string) {
  return { code: status, error: code, message, ...(details && { details }), requestId };
}

/** What the body parser throws. Source: the npm packages raw-body and body-parser. */
const bodyError = z.object({ status: z.int().min(400).max(499), type: z.string(), message: z.string() });

export const routeNotFound: RequestHandler = (request) => {
  throw unknownPath(request.path);
};

/** @param elsewhere a sentence that says where it is allowed */
export function methodNotAllowed(allowed: string, elsewhere?: string): RequestHandler {
  return ({ method }) => {
    throw methodRefused(method, allowed, elsewhere);
  };
}

export function methodRefused(method: string, allowed: string, elsewhere = ''): ApiError {
  const message = `${method} is not allowed here; use ${allowed}. ${elsewhere}`.trimEnd();
  return new ApiError(405, 'method_not_allowed', message, { headers: { Allow: allowed } });
}

/** @param metadataUrl the address of the document that a challenge names (RFC 9728, section 5.1); undefined: there is none */
export function respondWithError(metadataUrl: (request: Request) => string | undefined): ErrorRequestHandler {
  // Express recognises an error handler by its four parameters.
  return (thrown: unknown, request, response, _next) => {
    if (thrown instanceof ClientGone) return;
    const error = toApiError(thrown);
    // The request log writes it down together with the request it belongs to.
    if (error.status >= 500) noteFailure(request, error);
    if (response.headersSent) {
      request.socket.destroy();
      return;
    }
    response.status(error.status).set(error.headers);
    const challenge = error.headers['WWW-Authenticate'];
    const url = metadataUrl(request);
    if (challenge !== undefined && url !== undefined) {
      response.set('WWW-Authenticate', `${challenge}, resource_metadata="${url}"`);
    }
    response.json(errorBody(error, requestIdOf(request)));
  };
}

function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const known = bodyError.safeParse(thrown);
  if (!known.success) return internalError(thrown);
  const { status, message } = known.data;
  if (status === 413) {
    return new ApiError(413, 'body_too_large', 'The body is over 16 KiB; no operation needs so much.');
  }
  const advice = 'send it as it is, or none where none is needed';
  return new ApiError(status, 'invalid_body', `The body cannot be read (${message}); ${advice}.`);
}
