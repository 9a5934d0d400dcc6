/** Records each request in the log, in a metric of durations, and as a span of a trace. */
import type { IncomingMessage } from 'node:http';
import { property } from '@meterline/catalog/plain';
import { instruments } from '@meterline/service/metrics';
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { recordOf, requestIdOf, shortened } from './request-record.js';

/** A handler that only observes requests. It always calls `next`, and never responds itself. */
export type Watcher = RequestHandler;

/** Methods that a label may contain. All others count as `other`, because clients may send any word, and could create many label values. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS']);
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export function requestMetrics(registry: Registry): Watcher {
  const durations = instruments(registry).histogram(
    'meterline_http_request_duration_seconds',
    'Duration of requests by route, method and status. Status aborted: the client closed the connection first.',
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
 * Creates a span for every request, as a child of the caller's span if there is one. Spans of ClickHouse statements become its children. The
 * span does not contain the query string, because that may contain a cursor. Source: OpenTelemetry semantic conventions, "HTTP server span".
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

/** Returns the pattern of the matched route, such as `/v0/accounts`. Express sets `route`, but `IncomingMessage` has no type for it. */
function routeOf(request: IncomingMessage): string | undefined {
  const path = property(property(request, 'route'), 'path');
  return typeof path === 'string' ? path : undefined;
}

const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** Writes one log line per request. It contains the caller, path, client address and outcome, but no token, header or query string. */
export function requestLog(log: Logger): Watcher {
  return (request, response, next) => {
    const started = Date.now();
    // The query string is removed, because it may contain a cursor.
    const [target = ''] = request.originalUrl.split('?', 1);
    const path = shortened(target);
    // The address must be read now, because it is no longer available after the connection is closed.
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
