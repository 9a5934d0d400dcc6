/** What the service records of each request: a log line, its duration as a metric, and a span. */
import type { IncomingMessage } from 'node:http';
import { instruments } from '@meterline/service/metrics';
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { z } from 'zod';
import { recordOf, requestIdOf, shortened } from './request-record.js';

/** Sees a request first, and calls `next` without answering it. */
export type Watcher = RequestHandler;

/** Clients may send any word as a method; the ones that no route has share one label. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS']);
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Comes before everything that may answer, so that it sees every response. */
export function requestMetrics(registry: Registry): Watcher {
  const durations = instruments(registry).histogram(
    'meterline_http_request_duration_seconds',
    'Requests by route, method and status, and how long they took; status aborted: the client went away first.',
    BUCKETS,
    'route',
    'method',
    'status',
  );
  return (request, response, next) => {
    const started = performance.now();
    response.once('close', () => {
      const { method } = request;
      const labels = {
        route: routeOf(request) ?? 'none',
        method: METHODS.has(method) ? method : 'other',
        status: response.writableFinished ? String(response.statusCode) : 'aborted',
      };
      durations.observe(labels, (performance.now() - started) / 1000);
    });
    next();
  };
}

/**
 * A span for every request, below the caller's span if it sent one; the spans of its statements lie below it.
 * Source: OpenTelemetry semantic conventions, "HTTP server span". Never the query string: it may hold a cursor.
 */
export function requestSpans(tracer: Tracer): Watcher {
  return (request, response, next) => {
    const { method = '' } = request;
    const caller = propagation.extract(ROOT_CONTEXT, request.headers);
    const span = tracer.startSpan(method, { kind: SpanKind.SERVER }, caller);
    response.once('close', () => {
      const route = routeOf(request);
      if (route) span.updateName(`${method} ${route}`);
      span.setAttributes({
        'http.request.method': method,
        'http.response.status_code': response.statusCode,
        'meterline.request_id': requestIdOf(request),
        ...(route && { 'http.route': route }),
      });
      if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    context.with(trace.setSpan(caller, span), next);
  };
}

const matched = z.object({ route: z.object({ path: z.string() }) });

/**
 * The route of a request, as written in app.ts: `/v0/accounts/:accountId/metrics`. Undefined when no
 * route matches, or the request was answered before the routes.
 */
function routeOf(request: IncomingMessage): string | undefined {
  return matched.safeParse(request).data?.route.path;
}

const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/**
 * One log line for each request: who asked for what from where, and how it ended. Never a token, a header or a query string.
 * Caller, log and support identify a request by its id.
 */
export function requestLog(log: Logger): Watcher {
  return (request, response, next) => {
    const started = Date.now();
    // The query string may hold a cursor.
    const [target = ''] = request.originalUrl.split('?', 1);
    const path = shortened(target);
    // The address is not known any more when the client is gone.
    const remoteAddress = request.ip && shortened(request.ip);
    response.once('close', () => {
      const { id: requestId, facts, failure } = recordOf(request);
      const { statusCode: status } = response;
      const durationMs = Date.now() - started;
      const line = { requestId, ...facts, remoteAddress, method: request.method, path, status, durationMs };
      if (failure || status >= 500) {
        log.error({ event: 'request_failed', ...line, err: failure }, 'request failed');
        return;
      }
      const message = response.writableFinished ? 'request completed' : 'request aborted';
      log[HEALTH_PATHS.has(path) ? 'debug' : 'info']({ event: 'request', ...line }, message);
    });
    next();
  };
}
