import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

const TRACING = new URL('../../dist/tracing/index.js', import.meta.url);

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

it('only the API is loaded when tracing is off', async () => {
  expect(await loadedPackages(undefined)).toEqual(['@opentelemetry/api']);
});

it('the SDK is loaded when tracing is on', async () => {
  const loaded = await loadedPackages({ protocol: 'http/json', serviceName: 'test' });
  expect(loaded).toContain('@opentelemetry/sdk-trace-node');
});
