/** The code of the reference's examples, in every language, as it stands there. */
import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { codeOf, exampleRequests } from '@meterline/api';
import { createOpenApiDocument } from '@meterline/query';
import { installPacked, type PackedPackage } from '../packages/packed-package.js';
import { PROTECTED_RESOURCE, seedExamples } from './example-usage.js';
import { startApi, type TestApi } from './fixture.js';

const run = promisify(execFile);

const EXAMPLES = Object.entries(createOpenApiDocument().paths).flatMap(([path, methods]) =>
  Object.entries(methods).flatMap(([method, operation]) =>
    exampleRequests({ path, method, operation }).map((request, index) => ({
      name: `${operation.operationId}-${index}`,
      operationId: operation.operationId,
      request,
    })),
  ),
);

let api: TestApi;
let packed: PackedPackage;
let settings: Record<string, string>;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  api = await startApi({ protectedResource: PROTECTED_RESOURCE });
  await seedExamples(api);
  settings = { METERLINE_URL: api.url, METERLINE_API_KEY: await api.key('acme') };
  env = { ...settings, PATH: process.env['PATH'] };
  const programs = EXAMPLES.map(({ name, operationId, request }) => [name, codeOf('TypeScript', operationId, request)]);
  packed = await installPacked('client', Object.fromEntries(programs));
});
afterAll(async () => {
  await packed?.remove();
  await api.stop();
});

it('compiles', () => {
  expect(packed.faults).toEqual([]);
});

// The key of that example is nobody's, so there is nothing to revoke.
const answered = EXAMPLES.filter(({ operationId }) => operationId !== 'revokeApiKey');
const revocation = EXAMPLES.filter(({ operationId }) => operationId === 'revokeApiKey');

it.each(answered)('$name works with curl and TypeScript', async ({ name, operationId, request }) => {
  const { stdout } = await run('sh', ['-c', codeOf('curl', operationId, request)], { env });
  expect(withoutDigits(JSON.parse(stdout))).toBe(withoutDigits(request.answer));
  expect(await packed.run(name, settings)).toMatch(/\S/);
});

it.each(revocation)('$name is sent with curl and TypeScript', async ({ name, operationId, request }) => {
  const { stdout } = await run('sh', ['-c', codeOf('curl', operationId, request)], { env });
  expect(JSON.parse(stdout)).toMatchObject({ code: 404, error: 'not_found' });
  await expect(packed.run(name, settings)).rejects.toThrow('There is no such API key');
});

const hasPython = spawnSync('python3', ['--version']).status === 0;
const inPython = hasPython ? it : it.skip;

inPython.each(answered)('$name works with Python, where python3 is installed', async ({ operationId, request }) => {
  const { stdout } = await run('python3', ['-c', codeOf('Python', operationId, request)], { env });
  expect(stdout).toMatch(/^[{[].*\n$/);
});

inPython.each(revocation)('$name is sent with Python, where python3 is installed', async ({ operationId, request }) => {
  const sent = run('python3', ['-c', codeOf('Python', operationId, request)], { env });
  await expect(sent).rejects.toThrow('HTTP Error 404');
});

/** The digits of keys and of their ids are random. */
function withoutDigits(value: unknown): string {
  return JSON.stringify(value).replace(/[0-9a-f]{64}|[0-9a-f]{24}/g, '…');
}
