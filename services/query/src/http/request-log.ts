/**
 * One log line for each request: who asked for what from where, and how it ended. Never a token, a header or a query string.
 * Caller, log and support identify a request by its id.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { type HttpLogger, pinoHttp } from 'pino-http';
import { z } from 'zod';

const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

const completion = z.object({ durationMs: z.number() });

export function requestLog(logger: Logger): HttpLogger {
  return pinoHttp({
    logger,
    genReqId: chooseRequestId,
    // Errors are written by the logger's own serializer, as everywhere else.
    wrapSerializers: false,
    // The default would write the whole request for a logger that is never used.
    serializers: { req: () => undefined },
    // With both quiet, request.log is the logger of the line below: what a handler binds to it appears in that line.
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

/** 1 to 128 visible ASCII characters; anything else could forge log lines or headers. */
const SANE = /^[\x21-\x7e]{1,128}$/;

export function chooseRequestId(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && SANE.test(sent) ? sent : randomUUID();
}

/** The id that {@link chooseRequestId} chose when the request came in. */
export function requestIdOf(request: IncomingMessage): string {
  return String(request.id);
}
