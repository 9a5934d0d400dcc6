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
import type { TracingSettings } from './settings.js';

/** A process that stops has little time left, and spans are not worth more of it. */
const CLOSE_DEADLINE_MS = 1_000;
/** An insert is linked to every job whose rows it holds; the SDK alone would keep 128. */
const MAX_LINKS = 5_000;

export function startSdk({ protocol, serviceName }: TracingSettings, onTrouble: (reason: string) => void) {
  const trouble: DiagLogFunction = (reason) => onTrouble(reason);
  const silent: DiagLogFunction = () => undefined;
  diag.setLogger(
    { error: trouble, warn: trouble, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const exporter = protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter();
  const provider = new NodeTracerProvider({
    // What the variables say of the resource goes before; the name has been read from them already.
    resource: defaultResource()
      .merge(detectResources({ detectors: [processDetector, envDetector] }))
      .merge(resourceFromAttributes({ 'service.name': serviceName })),
    spanLimits: { linkCountLimit: MAX_LINKS },
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  provider.register();
  return {
    close: () =>
      new Promise<void>((resolve) => {
        const deadline = setTimeout(resolve, CLOSE_DEADLINE_MS);
        const closed = provider.shutdown().catch((error: unknown) => onTrouble(String(error)));
        void closed.then(() => {
          clearTimeout(deadline);
          resolve();
        });
      }),
  };
}
