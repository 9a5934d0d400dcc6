/** OpenTelemetry's SDK: collects spans and sends them in batches. Loaded only when tracing is on. */
import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  processDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { inTime } from './waiting.js';

export interface TracingSettings {
  readonly protocol: 'http/protobuf' | 'http/json';
  readonly serviceName: string;
}

/** A process that stops has little time left for spans. */
const CLOSE_DEADLINE_MS = 1_000;
/** An insert is linked to every job whose rows it holds; the SDK alone would keep 128. */
const MAX_LINKS = 5_000;

export function startSdk({ protocol, serviceName }: TracingSettings, onFailure: (reason: string) => void) {
  const failure: DiagLogFunction = (reason) => onFailure(reason);
  const silent: DiagLogFunction = () => undefined;
  diag.setLogger(
    { error: failure, warn: failure, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const exporter = protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter();
  const provider = new NodeTracerProvider({
    // The resource attributes of the environment; settings have the service name, which OTEL_SERVICE_NAME may have set.
    resource: defaultResource()
      .merge(detectResources({ detectors: [processDetector, envDetector] }))
      .merge(resourceFromAttributes({ 'service.name': serviceName })),
    spanLimits: { linkCountLimit: MAX_LINKS },
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  provider.register();
  return {
    close: async () => {
      const sent = provider.shutdown().catch((error: unknown) => onFailure(String(error)));
      await inTime('the collector of spans', sent, CLOSE_DEADLINE_MS).catch(() => undefined);
    },
  };
}
