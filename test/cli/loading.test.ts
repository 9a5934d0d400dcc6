/**
 * What the command loads, which is what its start costs. A command that a person waits for must not load every driver.
 * The list of loaded files is V8's coverage report, which adds 12 ms to a run of 480 ms; the debugger's list adds 110 ms.
 */
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { z } from 'zod';
import { runMeterline } from './run-meterline.js';

const coverage = z.object({ result: z.array(z.object({ url: z.string() })) });

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-loading-'));
});
afterEach(() => rm(directory, { recursive: true }));

/** The packages out of node_modules that a run has loaded, and how many files. */
async function loadedBy(args: readonly string[], env: Record<string, string> = {}) {
  const reports = join(directory, 'coverage');
  const run = await runMeterline(args, { env: { ...env, NODE_V8_COVERAGE: reports } });
  const [report = ''] = await readdir(reports);
  const { result } = coverage.parse(JSON.parse(await readFile(join(reports, report), 'utf8')));
  const files = result.map(({ url }) => url).filter((url) => url.startsWith('file:'));
  const packages = files.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]);
  return { run, packages: new Set(packages.filter((name) => name !== undefined)), files: files.length };
}

it.each([[['--version']], [['--help']], [['help']]])('%j loads no package', async (args) => {
  expect([...(await loadedBy(args)).packages]).toEqual([]);
});

const METRICS = ['metrics', '--since', '1d'];

it('metrics loads no driver of a server, and before its request nothing that checks answers', async () => {
  // A file is read and checked; its key is for another address, so the command ends where it would ask.
  const config = join(directory, 'config.json');
  await writeFile(config, JSON.stringify({ apiUrl: 'https://billing.example.com', apiKey: 'mlk_x' }), { mode: 0o600 });
  const env = { METERLINE_API_URL: 'http://127.0.0.1:9', METERLINE_ACCOUNT: 'acme', METERLINE_CONFIG: config };
  const { run, packages, files } = await loadedBy(METRICS, env);
  expect(run.stderr).toContain('there is no API key');
  expect([...packages]).toEqual(['commander']);
  expect(files).toBeLessThan(70);
});

it('metrics loads what checks an answer, and what it is shown with, for its request', async () => {
  const server = createServer((_request, response) => response.writeHead(401).end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const env = { METERLINE_API_URL: `http://127.0.0.1:${port}`, METERLINE_ACCOUNT: 'acme', METERLINE_API_KEY: 'mlk_x' };
  const { run, packages } = await loadedBy(METRICS, env);
  server.close();
  expect(run.code).toBe(3);
  expect([...packages].sort()).toEqual(['commander', 'get-east-asian-width', 'zod']);
});
