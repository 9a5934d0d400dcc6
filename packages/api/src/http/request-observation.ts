/** What the service records of each request: a log line, its duration as a metric, and a span. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Attributes,
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import { type HttpLogger, pinoHttp } from 'pino-http';
import { Histogram, type Registry } from 'prom-client';
import { z } from 'zod';

/** Clients may send any word as a method; the ones that no route has share one label. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS']);
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Comes before everything that may answer, so that it sees every answer. */
export function requestMetrics(registry: Registry): RequestHandler {
  const durations = new Histogram({
    name: 'meterline_http_request_duration_seconds',
    help: 'Requests by route, method and status, and how long they took; status aborted: the client went away first.',
    labelNames: ['route', 'method', 'status'],
    buckets: BUCKETS,
    registers: [registry],
  });
  return (request, response, next) => {
    const started = performance.now();
    response.once('close', () => {
      durations.observe(metricLabels(request, response), (performance.now() - started) / 1000);
    });
    next();
  };
}

function metricLabels(request: Request, response: Response) {
  return {
    route: routeOf(request) ?? 'none',
    method: METHODS.has(request.method) ? request.method : 'other',
    status: response.writableFinished ? String(response.statusCode) : 'aborted',
  };
}

/**
 * A span for every request, below the caller's span if it sent one; the spans of its statements lie below it.
 * Source: OpenTelemetry semantic conventions, "HTTP server span". Never the query string: it may hold a cursor.
 */
export function requestSpans(tracer: Tracer): RequestHandler {
  return (request, response, next) => {
    const caller = propagation.extract(ROOT_CONTEXT, request.headers);
    const span = tracer.startSpan(request.method, { kind: SpanKind.SERVER }, caller);
    response.once('close', () => {
      const route = routeOf(request);
      if (route) span.updateName(`${request.method} ${route}`);
      span.setAttributes(spanAttributes(request, response, route));
      if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    context.with(trace.setSpan(caller, span), next);
  };
}

function spanAttributes(request: Request, response: Response, route: string | undefined): Attributes {
  return {
    'http.request.method': request.method,
    'http.response.status_code': response.statusCode,
    'meterline.request_id': requestIdOf(request),
    ...(route && { 'http.route': route }),
  };
}

const matched = z.object({ path: z.string() });

/**
 * The route of a request, as written in app.ts: `/v0/accounts/:accountId/metrics`. Undefined when no
 * route matches, or the request was answered before the routes.
 */
function routeOf(request: Request): string | undefined {
  return matched.safeParse(request.route).data?.path;
}

const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

const completion = z.object({ durationMs: z.number() });

/**
 * One log line for each request: who asked for what from where, and how it ended. Never a token, a header or a query string.
 * Caller, log and support identify a request by its id.
 */
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

/** Adds to the request's line who the caller is, which account was asked for, or which API key was created. */
export function noteInLog(
  request: IncomingMessage,
  facts: { caller?: string; account?: string; keyId?: string },
): void {
  request.log.setBindings(Object.fromEntries(Object.entries(facts).map(([name, text]) => [name, shortened(text)])));
}

/** Characters of a text that the client has chosen. A name has 256 code points at most. */
const LONGEST_TEXT = 512;

function shortened(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}

function line(request: IncomingMessage & { ip?: string }, response: ServerResponse, values: unknown) {
  return {
    // Express looks through as many proxies as TRUST_PROXY says.
    remoteAddress: request.ip && shortened(request.ip),
    method: request.method,
    path: shortened(pathOf(request)),
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

function chooseRequestId(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && SANE.test(sent) ? sent : randomUUID();
}

/** The id that {@link chooseRequestId} chose when the request came in. */
export function requestIdOf(request: IncomingMessage): string {
  return String(request.id);
}
