/** An OpenTelemetry collector as far as the tests need it: takes OTLP over HTTP as JSON and keeps the spans. */
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { z } from 'zod';
import { listening } from '../harness/listening.js';

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

export interface TraceReceiver {
  /** The variables with which a process sends its spans here, and soon. */
  readonly env: Readonly<Record<string, string>>;
  readonly spans: readonly ReceivedSpan[];
  /** The first span that fits, received or to come. */
  span(fits: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
  close(): Promise<void>;
}

export async function startTraceReceiver(): Promise<TraceReceiver> {
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
