/** How the service measures and traces requests: a histogram of their durations, and a span for each. */
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
import { Histogram, type Registry } from 'prom-client';
import { z } from 'zod';
import { requestIdOf } from './request-log.js';

/** Clients may send any word as a method; the ones that no route has share one label. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS']);
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
