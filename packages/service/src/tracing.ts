/** Sets up tracing with OpenTelemetry. The code that creates spans is the same whether tracing is on or off. */

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
/** The default in the OpenTelemetry specification. */
const PROTOCOL = 'http/protobuf';

export interface Tracing {
  readonly isOn: boolean;
  /** Always present. While tracing is off, its spans are discarded at almost no cost. */
  readonly tracer: Tracer;
  /** An option of BullMQ's queues and workers. Undefined while tracing is off, so that jobs are not changed. */
  readonly queueTelemetry: Telemetry | undefined;
  close(): Promise<void>;
}

/**
 * Loads the SDK if tracing is on, and registers it for the whole process. Code finds the current span through the async context, so spans
 * are not passed as parameters.
 * @param serviceName the service name of the spans. If undefined, tracing is off.
 * @param onFailure called with the reason each time spans could not be sent
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

/** Explains why the SDK may be missing: it is a development dependency, which `npm start` does not install. */
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
 * Reads the variables that turn tracing on. Tracing is on if an exporter or an endpoint is set, unless OTEL_SDK_DISABLED is true. The SDK reads
 * all other variables itself, such as headers, sampling and resource attributes. Source: OpenTelemetry specification, "Environment Variable
 * Specification" and "OTLP Exporter Configuration".
 * @param defaultName the service name if OTEL_SERVICE_NAME is not set
 * @returns the service name of the spans, or undefined if tracing is off
 * @throws EnvError if Meterline does not support the exporter or the protocol
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
    throw new EnvError([`${name} must be ${PROTOCOL}, the only protocol that Meterline supports`]);
  }
  return read('OTEL_SERVICE_NAME') ?? defaultName;
}

type QueueSpan = ReturnType<Telemetry<Context>['tracer']['startSpan']>;

const carrier = z.record(z.string(), z.string());

/**
 * Implements BullMQ's telemetry interface with OpenTelemetry. The producer's span is stored in the job, and the worker's span becomes its child.
 * The format is that of the package bullmq-otel, so producers may use that package. Meterline does not use it for two reasons. It throws if the
 * trace context of a job is invalid JSON, which would stop the worker. It also creates a span each time a worker polls an empty queue.
 */
function queueTelemetry(tracer: Tracer): Telemetry<Context> {
  return {
    tracer: {
      startSpan: (name, options, parent) => {
        const kind = options?.kind;
        // All other spans are internal to BullMQ, for example spans for polling and for extending locks.
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

/** Returns the current span as text for a job, or the empty string if there is none, which BullMQ treats as no metadata. */
function toMetadata(at: Context): string {
  const span = trace.getSpanContext(at);
  if (!span || !isSpanContextValid(span)) return '';
  const headers: Record<string, string> = {};
  propagation.inject(at, headers);
  return JSON.stringify(headers);
}

/** Parses the metadata of a job. Producers may write any value, so invalid metadata is ignored. */
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

/** A span that records nothing and does not become the parent of other spans. */
const NO_SPAN: QueueSpan = {
  ...queueSpan(trace.wrapSpanContext(INVALID_SPAN_CONTEXT)),
  setSpanOnContext: (at: Context) => at,
};
