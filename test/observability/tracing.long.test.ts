/** Traces of one job and of one request, from real processes to a real receiver. */
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { SpanKind } from '@opentelemetry/api';
import { z } from 'zod';
import { usageEvent } from '../harness/events.js';
import { listening } from '../harness/listening.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueueRaw, stored } from '../harness/queue.js';
import type { HttpProcess } from '../harness/services.js';
import { execute } from '../harness/stack.js';

/** OTLP counts kinds from 1. */
const kind = (api: SpanKind) => api + 1;
const ERROR = 2;

let product: Product;
let receiver: TraceReceiver;
beforeEach(async () => {
  [product, receiver] = await Promise.all([startProduct(), startTraceReceiver()]);
});
afterEach(async () => {
  await Promise.all([product.close(), receiver.close()]);
});

const METRICS = '/v0/accounts/traced-acme/metrics';
const WINDOW = 'startTime=2026-01-01T00:00:00Z&endTime=2026-01-02T00:00:00Z';

/** The status and the request id of what a service answers to an admin of the account, below a caller's span. */
async function ask({ url }: HttpProcess, path: string, traceparent = '') {
  const authorization = `Bearer ${await product.key('traced-acme')}`;
  const { status, headers } = await fetch(`${url}${path}`, { headers: { authorization, traceparent } });
  return { status, requestId: headers.get('x-request-id') };
}

it('the trace of a job leads from a request to the collector, below its caller, to the insert', async () => {
  await product.startIngest(receiver.env);
  const collector = await product.startCollector(receiver.env);
  const [traceId, parentId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
  const { accountId: _, ...event } = usageEvent(1);
  const response = await fetch(`${collector.url}/v0/accounts/traced-acme/events`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await product.key('traced-acme', 'emitter')}`,
      'content-type': 'application/json',
      traceparent: `00-${traceId}-${parentId}-01`,
    },
    body: JSON.stringify([event]),
  });
  expect(response.status).toBe(202);
  await drained(product.queue);

  const request = await receiver.span((span) => span.kind === kind(SpanKind.SERVER));
  expect(request).toMatchObject({
    name: 'POST /v0/accounts/:accountId/events',
    service: 'meterline-collector',
    parentSpanId: parentId,
  });
  const sent = await receiver.span(({ parentSpanId }) => parentSpanId === request.spanId);
  expect(sent).toMatchObject({ name: 'add usage-events.usage', service: 'meterline-collector' });
  const taken = await receiver.span(({ parentSpanId }) => parentSpanId === sent.spanId);
  expect(taken).toMatchObject({ name: 'process usage-events', service: 'meterline-ingest' });
  expect([request, sent, taken].map((span) => span.traceId)).toEqual([traceId, traceId, traceId]);
  const insert = await receiver.span(({ name }) => name === 'insert');
  expect(insert.links).toMatchObject([{ traceId, spanId: taken.spanId }]);
  expect(JSON.stringify(receiver.spans)).not.toMatch(/mlk_/);
});

it('the trace of a job begins at the worker when the producer says nothing of a trace, or something that is none', async () => {
  await product.startIngest(receiver.env);
  for (const [index, opts] of [{}, { tm: '{not json' }, { tm: 7 }].entries()) {
    await enqueueRaw(product, { data: JSON.stringify(usageEvent(index)), opts: JSON.stringify(opts) });
  }
  await drained(product.queue);
  expect(await stored(product.warehouse)).toMatchObject({ events: 3 });
  await receiver.span(({ name }) => name === 'insert');
  const taken = () => receiver.spans.filter(({ name }) => name === 'process usage-events');
  await receiver.span(() => taken().length === 3);
  expect(taken().map(({ parentSpanId }) => parentSpanId || 'none')).toEqual(['none', 'none', 'none']);
});

it("the trace of a request continues the caller's, and holds a span for each statement", async () => {
  const query = await product.startQuery(receiver.env);
  const [traceId, parentSpanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
  const { status, requestId } = await ask(query, `${METRICS}?${WINDOW}`, `00-${traceId}-${parentSpanId}-01`);
  expect(status).toBe(200);
  const request = await receiver.span((span) => span.kind === kind(SpanKind.SERVER));
  expect(request).toMatchObject({
    ...{ name: 'GET /v0/accounts/:accountId/metrics', service: 'meterline-query', traceId, parentSpanId },
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/v0/accounts/:accountId/metrics',
      'http.response.status_code': 200,
      'meterline.request_id': requestId,
    },
  });
  const statement = await receiver.span(({ name }) => name === 'read_metrics');
  expect(statement).toMatchObject({ traceId, parentSpanId: request.spanId, kind: kind(SpanKind.CLIENT) });
  expect(JSON.stringify(receiver.spans)).not.toMatch(/mlk_|2026-01-02/);
});

it('the trace of a request marks a failure, and the statement that failed', async () => {
  const query = await product.startQuery(receiver.env);
  await execute(product.warehouse, 'RENAME TABLE usage_events TO mislaid');
  expect(await ask(query, `${METRICS}?${WINDOW}`)).toMatchObject({ status: 503 });
  const request = await receiver.span((span) => span.kind === kind(SpanKind.SERVER));
  const statement = await receiver.span(({ name }) => name === 'read_metrics');
  expect(request.status.code).toBe(ERROR);
  expect(statement).toMatchObject({ status: { code: ERROR, message: 'refused' }, parentSpanId: request.spanId });
});

it('the variables of OpenTelemetry name the service, and what is left is sent at the end', async () => {
  const env = { ...receiver.env, OTEL_SERVICE_NAME: 'billing', OTEL_BSP_SCHEDULE_DELAY: '60000' };
  const query = await product.startQuery(env);
  await ask(query, '/healthz');
  expect(await query.stop()).toBe(0);
  expect(receiver.spans.map(({ name, service }) => [name, service])).toContainEqual(['GET /healthz', 'billing']);
});

it('the variables of OpenTelemetry may name a collector that is away: the service works, says so once, and ends in time', async () => {
  const away = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_TIMEOUT: '500' };
  const query = await product.startQuery({ ...receiver.env, ...away });
  expect(await ask(query, '/healthz')).toMatchObject({ status: 200 });
  await query.entry(({ event }) => event === 'tracing_failed');
  expect(await ask(query, '/healthz')).toMatchObject({ status: 200 });
  expect(await query.stop()).toBe(0);
  expect(query.errorLines()).toEqual([]);
  expect(query.entries().filter(({ event }) => event === 'tracing_failed')).toHaveLength(1);
});

const attributes = z
  .array(
    z.object({
      key: z.string(),
      value: z.object({ stringValue: z.string().optional(), intValue: z.coerce.number().optional() }),
    }),
  )
  .transform((list) => Object.fromEntries(list.map(({ key, value }) => [key, value.stringValue ?? value.intValue])));

const span = z.object({
  name: z.string(),
  kind: z.number(),
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  attributes,
  links: z.array(z.object({ traceId: z.string(), spanId: z.string() })).default([]),
  status: z.object({ code: z.number().optional(), message: z.string().optional() }),
});

const exported = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes }),
      scopeSpans: z.array(z.object({ spans: z.array(span) })),
    }),
  ),
});

interface ReceivedSpan extends z.output<typeof span> {
  readonly service: unknown;
}

interface TraceReceiver {
  /** The variables with which a process sends its spans here, and soon. */
  readonly env: Readonly<Record<string, string>>;
  readonly spans: readonly ReceivedSpan[];
  /** The first span that fits, received or to come. */
  span(fits: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
  close(): Promise<void>;
}

/** An OpenTelemetry collector as far as the tests need it: takes OTLP over HTTP as JSON and keeps the spans. */
async function startTraceReceiver(): Promise<TraceReceiver> {
  const spans: ReceivedSpan[] = [];
  const news = new EventEmitter().setMaxListeners(0);
  const server = createServer(async (request, response) => {
    const { resourceSpans } = exported.parse(await json(request));
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = resource.attributes['service.name'];
      spans.push(...scopeSpans.flatMap((scope) => scope.spans.map((received) => ({ ...received, service }))));
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    news.emit('spans');
  });
  return {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: await listening(server),
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    },
    spans,
    span: async (fits) => {
      for (;;) {
        const found = spans.find(fits);
        if (found) return found;
        await once(news, 'spans');
      }
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
