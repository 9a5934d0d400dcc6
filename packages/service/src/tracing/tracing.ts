/** Tracing as the rest of the code sees it: the same whether it is on or off. */
import { type Tracer, trace } from '@opentelemetry/api';
import type { Telemetry } from 'bullmq';
import { queueTelemetry } from './queue-telemetry.js';
import type { TracingSettings } from './settings.js';

const TRACER = 'meterline';

export interface Tracing {
  /** Spans of a tracer that is off cost next to nothing and go nowhere. */
  readonly tracer: Tracer;
  /** For BullMQ's queues and workers; undefined when tracing is off, so that jobs stay as they are. */
  readonly queueTelemetry: Telemetry | undefined;
  /** Sends what is left, for a second at most. */
  close(): Promise<void>;
}

/**
 * The SDK is loaded only when it is needed. It registers itself for the process: what belongs to one request or job is
 * found by where the code runs, not by what is passed along.
 * @param onTrouble told why spans cannot be sent, at each attempt
 */
export async function startTracing(
  settings: TracingSettings | undefined,
  onTrouble: (reason: string) => void,
): Promise<Tracing> {
  if (!settings) return noTracing();
  const { startSdk } = await import('./sdk.js');
  const sdk = startSdk(settings, onTrouble);
  const tracer = trace.getTracer(TRACER);
  return { tracer, queueTelemetry: queueTelemetry(tracer), close: () => sdk.close() };
}

export function noTracing(): Tracing {
  return { tracer: trace.getTracer(TRACER), queueTelemetry: undefined, close: async () => undefined };
}
