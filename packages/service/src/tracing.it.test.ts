import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { EnvError, readTracingSettings } from './tracing.js';

const read = (variables: NodeJS.ProcessEnv) => readTracingSettings(variables, 'meterline-query');
const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
const ON = { protocol: 'http/protobuf', serviceName: 'meterline-query' };
const JSON_ON = { ...ON, protocol: 'http/json' };

it.each([
  [{}, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_TRACES_EXPORTER: ' ' }, undefined],
  [{ OTEL_SERVICE_NAME: 'x', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, undefined],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }, undefined],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'True' }, undefined],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'false' }, ON],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }, ON],
  [{ OTEL_TRACES_EXPORTER: 'otlp' }, ON],
  [
    { ...ENDPOINT, OTEL_SERVICE_NAME: 'billing' },
    { ...ON, serviceName: 'billing' },
  ],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, JSON_ON],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }, JSON_ON],
])('the variables of OpenTelemetry %j turn tracing on or off: %j', (variables, expected) => {
  expect(read(variables)).toEqual(expected);
});

it.each([
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL must be one of'],
  [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER must be otlp or none'],
])('tracing is refused with %j', (variables, message) => {
  expect(() => read(variables)).toThrow(EnvError);
  expect(() => read(variables)).toThrow(message);
});

const TRACING = new URL('../dist/tracing.js', import.meta.url);

/** Starts tracing in a process of its own. @returns the OpenTelemetry packages that are loaded then */
async function loadedPackages(settings: object | undefined): Promise<string[]> {
  const script = `
    import { createRequire } from 'node:module';
    const { startTracing } = await import('${TRACING.href}');
    const tracing = await startTracing(${JSON.stringify(settings)}, () => undefined);
    const files = Object.keys(createRequire('${fileURLToPath(TRACING)}').cache);
    const packages = files.map((file) => /@opentelemetry[\\\\/][\\w-]+/.exec(file)?.[0]);
    process.stdout.write(JSON.stringify([...new Set(packages)].filter(Boolean)));
    await tracing.close();`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]);
  return JSON.parse(stdout);
}

it('the SDK is loaded when tracing is on, and only the API otherwise', async () => {
  expect(await loadedPackages(undefined)).toEqual(['@opentelemetry/api']);
  const on = await loadedPackages({ protocol: 'http/json', serviceName: 'test' });
  expect(on).toContain('@opentelemetry/sdk-trace-node');
});
