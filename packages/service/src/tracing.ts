/** Tracing with OpenTelemetry. The rest of the code is the same whether it is on or off. */

import { parseJson } from '@meterline/catalog';
import {
  type Context,
  context,
  INVALID_SPAN_CONTEXT,
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
import { EnvError } from './environment.js';

export { EnvError } from './environment.js';

const TRACER = 'meterline';
/** The default of OpenTelemetry's specification. */
const PROTOCOL = 'http/protobuf';

export interface Tracing {
  readonly isOn: boolean;
  /** Spans of a tracer that is off cost next to nothing and go nowhere. */
  readonly tracer: Tracer;
  /** For BullMQ's queues and workers; undefined when tracing is off, so that jobs stay as they are. */
  readonly queueTelemetry: Telemetry | undefined;
  /** Sends what is left, for a second at most. */
  close(): Promise<void>;
}

/**
 * Loads the SDK, if tracing is on, and registers it for the process: the current span is found by where the code runs, not in a parameter.
 * @param serviceName the name that spans carry; undefined: tracing is off
 * @param onFailure called with the reason at each attempt to send spans that fails
 * @throws EnvError if the SDK is not installed
 */
export async function startTracing(
  serviceName: string | undefined,
  onFailure: (reason: string) => void,
): Promise<Tracing> {
  if (serviceName === undefined) return noTracing();
  const { startSdk } = await import('./tracing-sdk.js').catch(explainMissingSdk);
  const sdk = startSdk(serviceName, onFailure);
  const tracer = trace.getTracer(TRACER);
  return { isOn: true, tracer, queueTelemetry: queueTelemetry(tracer), close: () => sdk.close() };
}

/** `npm start` leaves development dependencies out. */
function explainMissingSdk(error: unknown): never {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) throw error;
  throw new EnvError([
    "traces are on (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_TRACES_EXPORTER is set), but OpenTelemetry's SDK is not installed; " +
      'run npm install where Meterline is installed, or set OTEL_SDK_DISABLED=true',
  ]);
}

export function noTracing(): Tracing {
  return { isOn: false, tracer: trace.getTracer(TRACER), queueTelemetry: undefined, close: async () => undefined };
}

/**
 * Reads the variables that turn tracing on: an exporter or an endpoint is named, and OTEL_SDK_DISABLED is not true. The SDK itself reads the
 * other variables: endpoint, headers, sampling, resource attributes. Source: OpenTelemetry specification, "Environment Variable
 * Specification" and "OTLP Exporter Configuration".
 * @param defaultName the service name if OTEL_SERVICE_NAME is not set
 * @returns the service name of the spans; undefined if tracing is off
 * @throws EnvError for an exporter or a protocol that Meterline does not have
 */
export function readTracedService(variables: NodeJS.ProcessEnv, defaultName: string): string | undefined {
  const read = (name: string) => variables[name]?.trim() || undefined;
  if (read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return undefined;
  const endpoint = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? read('OTEL_EXPORTER_OTLP_ENDPOINT');
  const exporter = read('OTEL_TRACES_EXPORTER') ?? (endpoint === undefined ? 'none' : 'otlp');
  if (exporter === 'none') return undefined;
  if (exporter !== 'otlp') throw new EnvError(['OTEL_TRACES_EXPORTER must be otlp or none']);
  const names = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'];
  const name = names.find((candidate) => read(candidate) !== undefined);
  if (name !== undefined && read(name) !== PROTOCOL) {
    throw new EnvError([`${name} must be ${PROTOCOL}, the only protocol that Meterline sends traces with`]);
  }
  return read('OTEL_SERVICE_NAME') ?? defaultName;
}

type QueueSpan = ReturnType<Telemetry<Context>['tracer']['startSpan']>;

/** W3C Trace Context and baggage, as a JSON object. */
const carrier = z.record(z.string(), z.string());

/**
 * BullMQ's telemetry interface on OpenTelemetry: a producer's span travels in the job, and the span of the worker that
 * takes the job is its child. The package bullmq-otel writes the same format, so its producers are understood. It is not
 * used here: it throws at a job whose trace context is not JSON, which would stop the worker, and makes a span of every
 * look into an empty queue.
 */
function queueTelemetry(tracer: Tracer): Telemetry<Context> {
  return {
    tracer: {
      startSpan: (name, options, parent) => {
        const kind = options?.kind;
        // All others are internal to BullMQ: looking for jobs, extending locks.
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

/** Empty where there is no span to pass on; BullMQ takes that for no metadata. */
function toMetadata(at: Context): string {
  const span = trace.getSpanContext(at);
  if (!span || !isSpanContextValid(span)) return '';
  const headers: Record<string, string> = {};
  propagation.inject(at, headers);
  return JSON.stringify(headers);
}

/** A producer may have put anything there. The job is processed whatever it is. */
function fromMetadata(metadata: unknown): Record<string, string> {
  return carrier.safeParse(typeof metadata === 'string' ? parseJson(metadata) : undefined).data ?? {};
}

function queueSpan(span: Span): QueueSpan {
  return {
    setSpanOnContext: (at: Context) => trace.setSpan(at, span),
    setAttribute: (key, value) => void span.setAttribute(key, value),
    setAttributes: (attributes) => void span.setAttributes(attributes),
    addEvent: (name, attributes) => void span.addEvent(name, attributes),
    recordException: (exception, time) => void span.recordException(exception, time),
    end: () => span.end(),
  };
}

/** Records nothing, and has no place above the spans of others. */
const NO_SPAN: QueueSpan = {
  ...queueSpan(trace.wrapSpanContext(INVALID_SPAN_CONTEXT)),
  setSpanOnContext: (at: Context) => at,
};
