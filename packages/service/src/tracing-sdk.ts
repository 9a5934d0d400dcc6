/** Sends spans in batches with OpenTelemetry's SDK. Loaded only if tracing is on, because the SDK is a development dependency. */
import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  processDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { inTime } from './waiting.js';

/** Short, because a stopping process has other work to finish. */
const CLOSE_DEADLINE_MS = 1_000;
/** The span of an insert has a link to every job whose rows it contains, but the SDK's default limit is 128 links. */
const MAX_LINKS = 5_000;

export function startSdk(serviceName: string, onFailure: (reason: string) => void) {
  const failure: DiagLogFunction = (reason) => onFailure(reason);
  const silent: DiagLogFunction = () => undefined;
  diag.setLogger(
    { error: failure, warn: failure, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const provider = new NodeTracerProvider({
    // The service name is merged last, so that it overrides the detected one. It already takes OTEL_SERVICE_NAME into account.
    resource: defaultResource()
      .merge(detectResources({ detectors: [processDetector, envDetector] }))
      .merge(resourceFromAttributes({ 'service.name': serviceName })),
    spanLimits: { linkCountLimit: MAX_LINKS },
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  return {
    close: async () => {
      const sent = provider.shutdown().catch((error: unknown) => onFailure(String(error)));
      await inTime('the collector of spans', sent, CLOSE_DEADLINE_MS).catch(() => undefined);
    },
  };
}
