/**
 * BullMQ's telemetry interface on OpenTelemetry: a producer's span travels in the job, and the span of the worker that
 * takes the job is its child. The package bullmq-otel writes the same format, so its producers are understood; it is
 * not used here, because it throws at a job whose trace context is not JSON, which would stop the worker, and makes a
 * span of every look into an empty queue.
 */
import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Telemetry } from 'bullmq';
import { z } from 'zod';

type QueueSpan = ReturnType<Telemetry<Context>['tracer']['startSpan']>;

/** W3C Trace Context and baggage, as a JSON object. */
const carrier = z.record(z.string(), z.string());

export function queueTelemetry(tracer: Tracer): Telemetry<Context> {
  return {
    tracer: {
      startSpan: (name, options, parent) => {
        const kind = options?.kind;
        // All others are BullMQ's own business: looking for jobs, extending locks.
        if (kind !== SpanKind.PRODUCER && kind !== SpanKind.CONSUMER) return NO_SPAN;
        return queueSpan(tracer.startSpan(name, { kind }, parent));
      },
    },
    contextManager: {
      with: (at, run) => context.with(at, run),
      active: () => context.active(),
      root: () => ROOT_CONTEXT,
      getMetadata: toMetadata,
      fromMetadata: (active, metadata) => propagation.extract(active, fromMetadata(metadata)),
    },
  };
}

/** Empty, which BullMQ takes for none, where there is nothing to hand on. */
function toMetadata(at: Context): string {
  const span = trace.getSpanContext(at);
  if (!span || !isSpanContextValid(span)) return '';
  const headers: Record<string, string> = {};
  propagation.inject(at, headers);
  return JSON.stringify(headers);
}

/** A producer may have put anything there; a job is taken in whatever it says of its trace. */
function fromMetadata(metadata: unknown): Record<string, string> {
  if (typeof metadata !== 'string') return {};
  try {
    return carrier.safeParse(JSON.parse(metadata)).data ?? {};
  } catch {
    return {};
  }
}

function queueSpan(span: Span): QueueSpan {
  return {
    setSpanOnContext: (at: Context) => trace.setSpan(at, span),
    setAttribute: (key, value) => void span.setAttribute(key, value),
    setAttributes: (attributes) => void span.setAttributes(attributes satisfies Attributes),
    addEvent: (name, attributes) => void span.addEvent(name, attributes),
    recordException: (exception, time) => void span.recordException(exception, time),
    end: () => span.end(),
  };
}

const NO_SPAN: QueueSpan = {
  setSpanOnContext: (at: Context) => at,
  setAttribute: () => undefined,
  setAttributes: () => undefined,
  addEvent: () => undefined,
  recordException: () => undefined,
  end: () => undefined,
};
