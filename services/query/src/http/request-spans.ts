/** A span for every request, continuing the caller's trace if there is one; the statements' spans lie below it. */
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
import { requestIdOf } from './request-id.js';
import { routeOf } from './route.js';

/** Source: OpenTelemetry semantic conventions, "HTTP server span". Never the query string: it may hold a cursor. */
export function requestSpans(tracer: Tracer): RequestHandler {
  return (request, response, next) => {
    const caller = propagation.extract(ROOT_CONTEXT, request.headers);
    const span = tracer.startSpan(request.method, { kind: SpanKind.SERVER }, caller);
    response.once('close', () => {
      const route = routeOf(request);
      if (route) span.updateName(`${request.method} ${route}`);
      span.setAttributes(attributes(request, response, route));
      if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    context.with(trace.setSpan(caller, span), next);
  };
}

function attributes(request: Request, response: Response, route: string | undefined): Attributes {
  return {
    'http.request.method': request.method,
    'http.response.status_code': response.statusCode,
    'meterline.request_id': requestIdOf(request),
    ...(route && { 'http.route': route }),
  };
}
