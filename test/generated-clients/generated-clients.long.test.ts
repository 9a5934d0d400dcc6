/**
 * A client that openapi-typescript makes of the OpenAPI document: it compiles, and one request works. The generator needs
 * TypeScript 5, so it is installed apart, when this test first runs: that needs a registry, once.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HERE = join(ROOT, 'test', 'generated-clients');
/** Below the project's own modules, so that Node's types are found. */
const FOLDER = join(ROOT, 'node_modules', '.cache', 'generated-clients');
const VITE = join(ROOT, 'node_modules', 'vite', 'bin', 'vite.js');
const FILES = ['package.json', 'program.ts', 'tsconfig.json'];

const run = promisify(execFile);
const environment = { PATH: process.env['PATH'], HOME: process.env['HOME'] };

let api: TestApi;

beforeAll(async () => {
  api = await startApi();
  const agent = { resourceType: 'agent', billingDimension: 'agent_compute_runtime_gbs' } as const;
  await api.seed([
    event({ ...agent, workspace: 'production', resourceName: 'crawler, one', usage: '12', cost: '0.5' }),
    event({ ...agent, workspace: 'staging', resourceName: 'crawler & two', usage: '3', cost: '0.25' }),
    event({ ...agent, workspace: 'staging', resourceName: 'another', usage: '100', cost: '9' }),
  ]);
  await installGenerator();
  await writeFile(join(FOLDER, 'openapi.json'), (await api.request('/openapi.json')).text);
});
afterAll(() => api.stop());

/** Unless these versions are installed already. */
async function installGenerator(): Promise<void> {
  const stamp = join(FOLDER, 'node_modules', 'installed.json');
  const wanted = await readFile(join(HERE, 'package.json'), 'utf8');
  const isInstalled = wanted === (await readFile(stamp, 'utf8').catch(() => ''));
  if (!isInstalled) await rm(FOLDER, { recursive: true, force: true });
  await mkdir(FOLDER, { recursive: true });
  for (const file of FILES) await cp(join(HERE, file), join(FOLDER, file));
  if (isInstalled) return;
  const options = ['--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', ['install', ...options], { cwd: FOLDER, env: environment });
  await writeFile(stamp, wanted);
}

it('openapi-typescript makes types of the document with which a client compiles, and one request works', async () => {
  const bin = (name: string) => join(FOLDER, 'node_modules', '.bin', name);
  await run(bin('openapi-typescript'), ['openapi.json', '--output', 'schema.ts'], { cwd: FOLDER });
  const compilers = [join(ROOT, 'node_modules', '.bin', 'tsc'), bin('tsc')];
  for (const compiler of compilers) {
    const { stdout } = await run(compiler, ['--project', FOLDER], { cwd: FOLDER }).catch(
      (error: { stdout: string }) => error,
    );
    expect(stdout).toBe('');
  }
  const env = { ...environment, METERLINE_URL: api.url, METERLINE_API_KEY: await api.key('acme') };
  const bundle = [VITE, 'build', '--logLevel', 'warn', '--ssr', 'program.ts', '--outDir', 'out'];
  await run(process.execPath, bundle, { cwd: FOLDER });
  const { stdout } = await run(process.execPath, ['out/program.js'], { cwd: FOLDER, env });
  expect(stdout).toBe('production 0.5 12\nstaging 0.25 3\n');
});
