/**
 * How a failure is answered. In the body, whose members are public, the status is `code` and the code is `error`; everywhere else they are
 * `status` and `code`.
 */
import type { ErrorRequestHandler, Request, RequestHandler } from 'express';
import { z } from 'zod';
import { ApiError, ClientGone, type ErrorCode, internalError, unknownPath } from './errors.js';
import { noteFailure, requestIdOf } from './request-observation.js';

interface ErrorBody {
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

/** What the body parser throws. Source: the npm packages raw-body and body-parser. */
const bodyError = z.object({ status: z.int().min(400).max(499), type: z.string(), message: z.string() });

export const routeNotFound: RequestHandler = (request) => {
  throw unknownPath(request.path);
};

/** @param elsewhere a sentence that says where it is allowed */
export function methodNotAllowed(allowed: string, elsewhere = ''): RequestHandler {
  return (request) => {
    const message = `${request.method} is not allowed here; use ${allowed}. ${elsewhere}`.trimEnd();
    throw new ApiError(405, 'method_not_allowed', message, { headers: { Allow: allowed } });
  };
}

/** @param metadataUrl of the document that a challenge names (RFC 9728, section 5.1); undefined: there is none */
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
    response
      .status(error.status)
      .set(error.headers)
      .set(challengeOf(error, metadataUrl(request)))
      .json(errorBody(error, requestIdOf(request)));
  };
}

function challengeOf({ headers }: ApiError, url: string | undefined): Readonly<Record<string, string>> {
  const challenge = headers['WWW-Authenticate'];
  return challenge === undefined || url === undefined
    ? {}
    : { 'WWW-Authenticate': `${challenge}, resource_metadata="${url}"` };
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
