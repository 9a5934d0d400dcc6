/** From whatever was thrown to the one shape that every failure has. */
import type { ErrorRequestHandler, RequestHandler } from 'express';
import { z } from 'zod';
import { ApiError, errorBody, unknownPath } from './errors.js';
import { requestIdOf } from './request-id.js';

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

// Express tells an error handler by its four parameters.
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
