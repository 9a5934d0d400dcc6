/** What the command loads, which is what its start costs. A command that a person waits for must not load every driver. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { loadedBy } from '../loaded-packages.js';
import { runMeterline } from './run-meterline.js';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-loading-'));
});
afterEach(() => rm(directory, { recursive: true }));

function loadedByCommand(args: readonly string[], env: Record<string, string> = {}) {
  return loadedBy((reported) => runMeterline(args, { env: { ...env, ...reported } }));
}

it.each([[['--version']], [['--help']], [['help']]])('%j loads no package', async (args) => {
  expect([...(await loadedByCommand(args)).packages]).toEqual([]);
});

const METRICS = ['metrics', '--since', '1d'];

it('metrics loads no driver of a server, and before its request nothing that checks answers', async () => {
  // A file is read and checked; its key is for another address, so the command ends where it would ask.
  const config = join(directory, 'config.json');
  await writeFile(config, JSON.stringify({ apiUrl: 'https://billing.example.com', apiKey: 'mlk_x' }), { mode: 0o600 });
  const env = { METERLINE_API_URL: 'http://127.0.0.1:9', METERLINE_ACCOUNT: 'acme', METERLINE_CONFIG: config };
  const { run, packages, files } = await loadedByCommand(METRICS, env);
  expect(run.stderr).toContain('there is no API key');
  expect([...packages]).toEqual(['commander']);
  expect(files).toBeLessThan(70);
});

it('metrics loads what checks an answer, and what it is shown with, for its request', async () => {
  const server = createServer((_request, response) => response.writeHead(401).end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const env = { METERLINE_API_URL: `http://127.0.0.1:${port}`, METERLINE_ACCOUNT: 'acme', METERLINE_API_KEY: 'mlk_x' };
  const { run, packages } = await loadedByCommand(METRICS, env);
  server.close();
  expect(run.code).toBe(3);
  expect([...packages].sort()).toEqual(['commander', 'get-east-asian-width', 'zod']);
});
