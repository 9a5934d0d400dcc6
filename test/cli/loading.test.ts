/**
 * What the command loads, which is what its start costs. A command that a person waits for must not load every driver.
 * The list of loaded files is V8's coverage report, which adds 12 ms to a run of 480 ms; the debugger's list adds 110 ms.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
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
async function loadedBy(args: readonly string[]): Promise<{ packages: Set<string>; files: number }> {
  await runMeterline(args, { env: { NODE_V8_COVERAGE: directory } });
  const [report = ''] = await readdir(directory);
  const { result } = coverage.parse(JSON.parse(await readFile(join(directory, report), 'utf8')));
  const files = result.map(({ url }) => url).filter((url) => url.startsWith('file:'));
  const packages = files.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]);
  return { packages: new Set(packages.filter((name) => name !== undefined)), files: files.length };
}

it.each([[['--version']], [['--help']], [['help']]])(
  '%j loads the parser of the command line and nothing else',
  async (args) => {
    expect([...(await loadedBy(args)).packages]).toEqual(['commander']);
  },
);

it('metrics loads no driver of a server', async () => {
  const { packages, files } = await loadedBy(['metrics', '--since', '1d', '--api-url', 'http://127.0.0.1:9']);
  expect([...packages].sort()).toEqual(['@date-fns/utc', 'commander', 'date-fns', 'get-east-asian-width', 'zod']);
  // All of date-fns would be 250 more.
  expect(files).toBeLessThan(250);
});
