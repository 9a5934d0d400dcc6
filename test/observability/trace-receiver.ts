/** An OpenTelemetry collector as far as the tests need it: receives OTLP over HTTP, as Protobuf, and keeps the spans. */
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { parse } from 'protobufjs';
import { z } from 'zod';
import { listening } from '../harness/listening.js';

/** The fields that the tests read. Source: opentelemetry-proto, collector/trace/v1 and trace/v1. */
const { root } = parse(`
  syntax = "proto3";
  message Request { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message Span {
    bytes trace_id = 1;
    bytes span_id = 2;
    bytes parent_span_id = 4;
    string name = 5;
    int32 kind = 6;
    repeated KeyValue attributes = 9;
    repeated Link links = 13;
    Status status = 15;
  }
  message Link { bytes trace_id = 1; bytes span_id = 2; }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value { string string_value = 1; int64 int_value = 3; } }`);
const exportRequest = root.lookupType('Request');

const id = z.instanceof(Uint8Array).transform((bytes) => Buffer.from(bytes).toString('hex'));
const attributes = z
  .array(
    z.object({
      key: z.string(),
      value: z.object({ stringValue: z.string().optional(), intValue: z.number().optional() }),
    }),
  )
  .transform((list) => Object.fromEntries(list.map(({ key, value }) => [key, value.stringValue ?? value.intValue])));

const span = z.object({
  name: z.string(),
  kind: z.number(),
  traceId: id,
  spanId: id,
  parentSpanId: id.optional(),
  attributes,
  links: z.array(z.object({ traceId: id, spanId: id })),
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

export interface TraceReceiver {
  /** The variables with which a process sends its spans here, without delay. */
  readonly env: Readonly<Record<string, string>>;
  readonly spans: readonly ReceivedSpan[];
  /** Resolves with the first matching span, received or to come. */
  span(matches: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
  close(): Promise<void>;
}

export async function startTraceReceiver(): Promise<TraceReceiver> {
  const spans: ReceivedSpan[] = [];
  const news = new EventEmitter().setMaxListeners(0);
  const server = createServer(async (request, response) => {
    const decoded = exportRequest.decode(await buffer(request));
    const { resourceSpans } = exported.parse(exportRequest.toObject(decoded, { longs: Number, arrays: true }));
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = resource.attributes['service.name'];
      spans.push(...scopeSpans.flatMap((scope) => scope.spans.map((received) => ({ ...received, service }))));
    }
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
    news.emit('spans');
  });
  return {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: await listening(server), OTEL_BSP_SCHEDULE_DELAY: '100' },
    spans,
    span: async (matches) => {
      for (;;) {
        const found = spans.find(matches);
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
