/** Traces of jobs and of requests, from real processes to a receiver in the test's process. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { SpanKind } from '@opentelemetry/api';
import { usageEvent } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueueRaw, stored } from '../harness/queue.js';
import type { HttpProcess } from '../harness/services.js';
import { execute } from '../harness/stack.js';
import { startTraceReceiver, type TraceReceiver } from './trace-receiver.js';

/** OTLP counts kinds from 1. */
const kind = (api: SpanKind) => api + 1;
const ERROR = 2;

let product: Product;
let receiver: TraceReceiver;
let collector: HttpProcess;
let query: HttpProcess;
beforeAll(async () => {
  [product, receiver] = await Promise.all([startProduct(), startTraceReceiver()]);
  await product.startIngest(receiver.env);
  [collector, query] = await Promise.all([product.startCollector(receiver.env), product.startQuery(receiver.env)]);
});
afterAll(async () => {
  await Promise.all([product.close(), receiver.close()]);
});

const METRICS = '/v0/accounts/traced-acme/metrics';
const WINDOW = 'startTime=2026-01-01T00:00:00Z&endTime=2026-01-02T00:00:00Z';

/** A caller's span, and the header with which the caller sends it. */
function callersSpan() {
  const [traceId, parentSpanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, parentSpanId, traceparent: `00-${traceId}-${parentSpanId}-01` };
}

/** A request of an admin of the account. @returns status and request id */
async function ask({ url }: HttpProcess, path: string, traceparent = '') {
  const authorization = `Bearer ${await product.key('traced-acme')}`;
  const { status, headers } = await fetch(`${url}${path}`, {
    headers: { authorization, traceparent, connection: 'close' },
  });
  return { status, requestId: headers.get('x-request-id') };
}

it('the trace of a job leads from a request to the collector, below its caller, to the insert', async () => {
  const { traceId, parentSpanId, traceparent } = callersSpan();
  const { accountId: _, ...event } = usageEvent(1);
  const response = await fetch(`${collector.url}/v0/events`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await product.key('traced-acme', 'emitter')}`,
      ...{ 'content-type': 'application/json', connection: 'close', traceparent },
    },
    body: JSON.stringify([event]),
  });
  expect(response.status).toBe(202);
  await drained(product.queue);

  const request = await receiver.span((span) => span.traceId === traceId && span.kind === kind(SpanKind.SERVER));
  expect(request).toMatchObject({
    ...{ name: 'POST /v0/events', service: 'meterline-collector', parentSpanId },
  });
  const sent = await receiver.span((span) => span.parentSpanId === request.spanId);
  expect(sent).toMatchObject({ name: 'add usage-events.usage', service: 'meterline-collector', traceId });
  const taken = await receiver.span((span) => span.parentSpanId === sent.spanId);
  expect(taken).toMatchObject({ name: 'process usage-events', service: 'meterline-ingest', traceId });
  const insert = await receiver.span(({ name }) => name === 'insert');
  expect(insert.links).toMatchObject([{ traceId, spanId: taken.spanId }]);
});

it('the trace of a job begins at the worker when the producer sends no trace, or a malformed one', async () => {
  for (const [index, opts] of [{}, { tm: '{not json' }, { tm: 7 }].entries()) {
    const data = JSON.stringify(usageEvent(index, { accountId: 'untraced' }));
    await enqueueRaw(product, { data, opts: JSON.stringify(opts) });
  }
  await drained(product.queue);
  expect(await stored(product.warehouse, 'untraced')).toMatchObject({ events: 3 });
  const begun = () => receiver.spans.filter((span) => span.name === 'process usage-events' && !span.parentSpanId);
  await receiver.span(() => begun().length === 3);
});

it("the trace of a request continues the caller's, and holds a span for each statement", async () => {
  const { traceId, parentSpanId, traceparent } = callersSpan();
  const { status, requestId } = await ask(query, `${METRICS}?${WINDOW}`, traceparent);
  expect(status).toBe(200);
  const request = await receiver.span((span) => span.traceId === traceId && span.kind === kind(SpanKind.SERVER));
  expect(request).toMatchObject({
    ...{ name: 'GET /v0/accounts/:accountId/metrics', service: 'meterline-query', parentSpanId },
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/v0/accounts/:accountId/metrics',
      'http.response.status_code': 200,
      'meterline.request_id': requestId,
    },
  });
  const statement = await receiver.span((span) => span.traceId === traceId && span.name === 'read_metrics');
  expect(statement).toMatchObject({ parentSpanId: request.spanId, kind: kind(SpanKind.CLIENT) });
});

it('the trace of a request marks a failure, and the statement that failed', async () => {
  const { traceId, traceparent } = callersSpan();
  await execute(product.warehouse, 'RENAME TABLE usage_events TO mislaid');
  expect(await ask(query, `${METRICS}?${WINDOW}&groupBy=workspace`, traceparent)).toMatchObject({ status: 503 });
  await execute(product.warehouse, 'RENAME TABLE mislaid TO usage_events');
  const request = await receiver.span((span) => span.traceId === traceId && span.kind === kind(SpanKind.SERVER));
  const statement = await receiver.span((span) => span.traceId === traceId && span.name === 'read_metrics');
  expect(request.status.code).toBe(ERROR);
  expect(statement).toMatchObject({ status: { code: ERROR, message: 'refused' }, parentSpanId: request.spanId });
});

it('traces have no credentials and no query strings', () => {
  expect(receiver.spans.length).toBeGreaterThan(8);
  expect(JSON.stringify(receiver.spans)).not.toMatch(/mlk_|2026-01-02/);
});

it('the variables of OpenTelemetry name the service, whose last spans are sent when it ends', async () => {
  const own = { ...receiver.env, OTEL_SERVICE_NAME: 'billing', OTEL_BSP_SCHEDULE_DELAY: '60000' };
  const billing = await product.startQuery(own);
  await ask(billing, '/healthz');
  expect(await billing.stop()).toBe(0);
  expect(receiver.spans.map(({ name, service }) => [name, service])).toContainEqual(['GET /healthz', 'billing']);
});

it('the variables of OpenTelemetry may name a receiver that is away: the service works, and logs this once', async () => {
  const away = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_TIMEOUT: '500' };
  const alone = await product.startQuery({ ...receiver.env, ...away });
  expect(await ask(alone, '/healthz')).toMatchObject({ status: 200 });
  await alone.entry(({ event }) => event === 'tracing_failed');
  expect(await ask(alone, '/healthz')).toMatchObject({ status: 200 });
  expect(await alone.stop()).toBe(0);
  expect(alone.errorLines()).toEqual([]);
  expect(alone.entries().filter(({ event }) => event === 'tracing_failed')).toHaveLength(1);
});
