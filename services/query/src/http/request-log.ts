/** One line for each request: who asked for what from where, and how it ended. Never a token, a header or a query string. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { type HttpLogger, pinoHttp } from 'pino-http';
import { z } from 'zod';
import { chooseRequestId } from './request-id.js';

const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

const completion = z.object({ durationMs: z.number() });

export function requestLog(logger: Logger): HttpLogger {
  return pinoHttp({
    logger,
    genReqId: chooseRequestId,
    // An error is told as everywhere else, by the logger's own serializer.
    wrapSerializers: false,
    // The whole request would be written as JSON for a logger that nobody uses.
    serializers: { req: () => undefined },
    // With both quiet, request.log is the logger of the line below: what a handler binds to it appears there.
    quietReqLogger: true,
    quietResLogger: true,
    customAttributeKeys: { reqId: 'requestId', responseTime: 'durationMs' },
    customLogLevel: (request, response, error) => {
      if (error || response.statusCode >= 500) return 'error';
      return HEALTH_PATHS.has(pathOf(request)) ? 'debug' : 'info';
    },
    customSuccessObject: (request, response, values: unknown) => ({
      event: 'request',
      ...line(request, response, values),
    }),
    customErrorObject: (request, response, err, values: unknown) => ({
      ...line(request, response, values),
      event: 'request_failed',
      err,
    }),
    customErrorMessage: () => 'request failed',
  });
}

/** Adds to the request's line who the caller is, or which account was asked for. */
export function noteInLog(request: IncomingMessage, facts: { caller?: string; account?: string }): void {
  request.log.setBindings(facts);
}

function line(request: IncomingMessage & { ip?: string }, response: ServerResponse, values: unknown) {
  return {
    // Express looks through as many proxies as TRUST_PROXY says.
    remoteAddress: request.ip,
    method: request.method,
    path: pathOf(request),
    status: response.statusCode,
    durationMs: completion.parse(values).durationMs,
  };
}

/** Express rewrites `url` while it routes; `originalUrl` stays. The query string may hold a cursor. */
function pathOf(request: IncomingMessage & { originalUrl?: string }): string {
  return (request.originalUrl ?? request.url ?? '').split('?', 1)[0] ?? '';
}
