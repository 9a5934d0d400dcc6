/** How many requests, how they end and how long they take. */
import type { Request, RequestHandler, Response } from 'express';
import { Histogram, type Registry } from 'prom-client';
import { routeOf } from './route.js';

/** Any word may come as a method; those that no route has are one. */
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
      durations.observe(labels(request, response), (performance.now() - started) / 1000);
    });
    next();
  };
}

function labels(request: Request, response: Response) {
  return {
    route: routeOf(request) ?? 'none',
    method: METHODS.has(request.method) ? request.method : 'other',
    status: response.writableFinished ? String(response.statusCode) : 'aborted',
  };
}
