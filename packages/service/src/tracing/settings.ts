/**
 * Whether traces are exported, and how, by OpenTelemetry's standard variables. Everything else (endpoint, headers,
 * sampling, resource attributes) is read by the SDK itself. Source: OpenTelemetry specification, "Environment Variable
 * Specification" and "OTLP Exporter Configuration".
 */
import { z } from 'zod';
import { EnvError } from '../environment.js';

const PROTOCOLS = ['http/protobuf', 'http/json'] as const;
type TracingProtocol = (typeof PROTOCOLS)[number];

export interface TracingSettings {
  readonly protocol: TracingProtocol;
  readonly serviceName: string;
}

const text = z
  .string()
  .trim()
  .optional()
  .transform((value) => value || undefined);

const environment = z.object({
  OTEL_SDK_DISABLED: text,
  OTEL_TRACES_EXPORTER: text,
  OTEL_EXPORTER_OTLP_ENDPOINT: text,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: text,
  OTEL_EXPORTER_OTLP_PROTOCOL: text,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: text,
  OTEL_SERVICE_NAME: text,
});

/**
 * Undefined: tracing is off. It is on when an exporter or an endpoint is named, and not when OTEL_SDK_DISABLED is true.
 * @param serviceName unless OTEL_SERVICE_NAME says otherwise
 * @throws EnvError when they ask for what Meterline does not have
 */
export function readTracingSettings(variables: NodeJS.ProcessEnv, serviceName: string): TracingSettings | undefined {
  const env = environment.parse(variables);
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return undefined;
  const exporter = env.OTEL_TRACES_EXPORTER ?? (hasEndpoint(env) ? 'otlp' : 'none');
  if (exporter === 'none') return undefined;
  if (exporter !== 'otlp') throw new EnvError(['OTEL_TRACES_EXPORTER must be otlp or none']);
  const asked = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? env.OTEL_EXPORTER_OTLP_PROTOCOL ?? 'http/protobuf';
  const protocol = PROTOCOLS.find((known) => known === asked);
  if (!protocol) throw new EnvError([`OTEL_EXPORTER_OTLP_PROTOCOL must be one of ${PROTOCOLS.join(', ')}`]);
  return { protocol, serviceName: env.OTEL_SERVICE_NAME ?? serviceName };
}

function hasEndpoint(env: z.output<typeof environment>): boolean {
  return (env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_ENDPOINT) !== undefined;
}
