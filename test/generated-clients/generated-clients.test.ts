/**
 * Clients that generators make of the OpenAPI document: that each compiles, and that one request works. The generators are
 * 390 packages that nothing else needs, so they have a lock file of their own, and are installed when this test first runs: that
 * needs a registry, once. They are the newest that run on Node 20, the oldest version of this project.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { event, startApi, type TestApi } from '../contract/fixture.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = join(ROOT, 'test', 'generated-clients');
/** Below the project's own modules, so that `tsx` and Node's types are found. */
const FOLDER = join(ROOT, 'node_modules', '.cache', 'generated-clients');
const INSTALLED = join(FOLDER, 'node_modules', '.package-lock.json');

const run = promisify(execFile);

let api: TestApi;
let env: Record<string, string | undefined>;

beforeAll(async () => {
  api = await startApi();
  const agent = { resourceType: 'agent', billingDimension: 'agent_compute_runtime_gbs' } as const;
  await api.seed([
    event({ ...agent, workspace: 'production', resourceName: 'crawler, one', usage: '12', cost: '0.5' }),
    event({ ...agent, workspace: 'staging', resourceName: 'crawler & two', usage: '3', cost: '0.25' }),
    event({ ...agent, workspace: 'staging', resourceName: 'another', usage: '100', cost: '9' }),
  ]);
  env = { PATH: process.env['PATH'], METERLINE_URL: api.url, METERLINE_API_KEY: await api.key('acme') };
  await installGenerators();
  await cp(join(HERE, 'programs'), FOLDER, { recursive: true });
  await writeFile(join(FOLDER, 'openapi.json'), (await api.request('/openapi.json')).text);
});
afterAll(() => api.stop());

/** Unless they are installed already, with the lock file as it is now. */
async function installGenerators(): Promise<void> {
  const lock = await readFile(join(HERE, 'package-lock.json'), 'utf8');
  const installed = await readFile(join(FOLDER, 'package-lock.json'), 'utf8').catch(() => '');
  if (installed === lock && (await readFile(INSTALLED).catch(() => undefined))) return;
  await rm(FOLDER, { recursive: true, force: true });
  await mkdir(FOLDER, { recursive: true });
  for (const file of ['package.json', 'package-lock.json', 'orval.config.cjs'])
    await cp(join(HERE, file), join(FOLDER, file));
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', args, { cwd: FOLDER, env: { PATH: process.env['PATH'], HOME: process.env['HOME'] } });
}

function bin(name: string): string {
  return join(FOLDER, 'node_modules', '.bin', name);
}

describe.each([
  ['hey-api', 'openapi-ts', ['--input', 'openapi.json', '--output', 'hey-api', '--client', '@hey-api/client-fetch']],
  ['openapi-fetch', 'openapi-typescript', ['openapi.json', '--output', 'openapi-typescript/schema.ts']],
  ['orval', 'orval', ['--config', 'orval.config.cjs']],
])('%s', (program, generator, args) => {
  it('makes a client of the document, and one request works', async () => {
    await run(bin(generator), args, { cwd: FOLDER, env });
    const { stdout } = await run(process.execPath, ['--import', 'tsx', `${program}.ts`], { cwd: FOLDER, env });
    expect(stdout).toBe('production 0.5 12\nstaging 0.25 3\n');
  });
});

it.each([
  ['the newest TypeScript of the project', join(ROOT, 'node_modules', '.bin', 'tsc')],
  ['TypeScript 5', bin('tsc')],
])('all of them compile with %s', async (_name, compiler) => {
  const { stdout } = await run(compiler, ['--project', FOLDER], { cwd: FOLDER }).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe('');
});
