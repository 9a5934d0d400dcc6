import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, symlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { z } from 'zod';
import { testFolder } from '../../../test/harness/test-folder.js';
import { EnvError, readTracedService } from './tracing.js';

const read = (variables: NodeJS.ProcessEnv) => readTracedService(variables, 'meterline-query');
const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
const ON = 'meterline-query';

it.each([
  [{}, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_TRACES_EXPORTER: ' ' }, undefined],
  [{ OTEL_SERVICE_NAME: 'x', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, undefined],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }, undefined],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'True' }, undefined],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'false' }, ON],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }, ON],
  [{ OTEL_TRACES_EXPORTER: 'otlp' }, ON],
  [{ ...ENDPOINT, OTEL_SERVICE_NAME: 'billing' }, 'billing'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }, ON],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' }, ON],
])('the variables of OpenTelemetry %j turn tracing on, with a service name, or off: %j', (variables, expected) => {
  expect(read(variables)).toBe(expected);
});

it.each([
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, the only'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, 'OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf'],
  [
    { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' },
    'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL must be http/protobuf',
  ],
  [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER must be otlp or none'],
])('tracing is rejected with %j', (variables, message) => {
  expect(() => read(variables)).toThrow(EnvError);
  expect(() => read(variables)).toThrow(message);
});

const PACKAGE = new URL('../', import.meta.url);
const TRACING = new URL('dist/tracing.js', PACKAGE);
const MODULES = new URL('../../node_modules/', PACKAGE);

const folder = testFolder();

/** Starts tracing in a child process. @returns the OpenTelemetry packages that it has loaded */
async function loadedPackages(serviceName: string | undefined, tracing = TRACING): Promise<string[]> {
  const script = `
    import { createRequire } from 'node:module';
    const { startTracing } = await import('${tracing.href}');
    const tracing = await startTracing(${JSON.stringify(serviceName)}, () => undefined);
    const files = Object.keys(createRequire('${fileURLToPath(tracing)}').cache);
    const packages = files.map((file) => /@opentelemetry[\\\\/][\\w-]+/.exec(file)?.[0]);
    process.stdout.write(JSON.stringify([...new Set(packages)].filter(Boolean)));
    await tracing.close();`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]);
  return JSON.parse(stdout);
}

it('the SDK is loaded when tracing is on, and only the API otherwise', async () => {
  expect(await loadedPackages(undefined)).toEqual(['@opentelemetry/api']);
  const on = await loadedPackages('test');
  expect(on).toContain('@opentelemetry/sdk-trace-node');
});

it('without the SDK, which npm start does not install, tracing fails with the fix', async () => {
  const manifest = z.object({ dependencies: z.record(z.string(), z.string()) });
  const { dependencies } = manifest.parse(JSON.parse(await readFile(new URL('package.json', PACKAGE), 'utf8')));
  for (const name of Object.keys(dependencies)) {
    await mkdir(dirname(folder('node_modules', name)), { recursive: true });
    await symlink(fileURLToPath(new URL(name, MODULES)), folder('node_modules', name));
  }
  for (const name of ['dist', 'package.json']) {
    await cp(new URL(name, PACKAGE), folder(name), { recursive: true });
  }
  const tracing = pathToFileURL(folder('dist', 'tracing.js'));
  expect(await loadedPackages(undefined, tracing)).toEqual(['@opentelemetry/api']);
  await expect(loadedPackages('test', tracing)).rejects.toThrow(
    "traces are on (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_TRACES_EXPORTER is set), but OpenTelemetry's SDK is not installed; run npm install",
  );
});
