/** An emitter and the program that it is part of: when that does not close it, is killed, or has a listener that fails. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from '@jest/globals';
import { z } from 'zod';
import { TestCollector } from './test-collector.js';

const AGENT = `{ accountId: 'acme', workspace: 'production', resourceType: 'agent', resourceName: 'support' }`;

function start(program: string, args: readonly string[]): ChildProcessByStdio<null, Readable, Readable> {
  const code = `import { openEmitter } from '@meterline/emitter';\n${program}`;
  return spawn(process.execPath, ['--input-type=module', '--eval', code, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** @returns how a program ends, and what it says that is wrong */
async function run(program: string, ...args: readonly string[]) {
  const child = start(program, args);
  const [errors, end] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { errors, end };
}

const body = z.array(z.object({ usage: z.string() }));

it.concurrent('a program that ends by itself has reported its sums', async () => {
  const collector = await TestCollector.start();
  const program = `
    const meter = await openEmitter({ url: process.argv[1], apiKey: 'key', reportMs: 50, batchMs: 1 });
    for (let n = 0; n < 5; n += 1) meter.add({ ...${AGENT}, billingDimension: 'agent_async_requests_count', usage: 1 });`;
  expect(await run(program, collector.url)).toEqual({ errors: '', end: [0, null] });
  collector.stop();
  expect(collector.events.map(({ usage }) => usage)).toEqual(['5']);
});

it.concurrent('a program that is killed has lost of a timer what passed since its last report', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'meterline-spool-'));
  // A GB-second for each millisecond. It prints how much there was to report before it saw a new report.
  const program = `
    const spool = { directory: process.argv[1] };
    const meter = await openEmitter({ url: 'http://127.0.0.1:9', apiKey: 'key', reportMs: 20, spool, onProblem: () => {} });
    const sandbox = { ...${AGENT}, resourceType: 'sandbox', billingDimension: 'sandbox_compute_runtime_gbs' };
    meter.start({ ...sandbox, gb: 1000 });
    const started = performance.now();
    let [reports, elapsed] = [0, 0];
    setInterval(() => {
      if (meter.counters.recorded > reports) console.log(elapsed);
      reports = meter.counters.recorded;
      elapsed = performance.now() - started;
    }, 1);`;
  const child = start(program, [directory]);
  const printed: number[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    printed.push(Number(line));
    if (printed.length === 5) child.kill('SIGKILL');
  }
  const files = (await readdir(directory)).filter((name) => name.endsWith('.jsonl'));
  const lines = (await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')))).join('');
  const events = body.parse(
    lines
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );
  const total = events.reduce((sum, { usage }) => sum + Number(usage), 0);
  expect(events.length).toBeGreaterThanOrEqual(printed.length);
  expect(total).toBeGreaterThanOrEqual(Math.floor(printed.at(-1) ?? Number.NaN));
  await rm(directory, { recursive: true });
});

it.concurrent.each([
  ['at once', `() => { throw new Error('the log is away'); }`],
  ['later', `async () => { throw new Error('the log is away'); }`],
])('a listener for problems that fails %s is a warning, and not the end of the program', async (_when, listener) => {
  const program = `
    const meter = await openEmitter({ url: 'http://127.0.0.1:9', apiKey: 'key', onProblem: ${listener} });
    const id = meter.record({ ...${AGENT}, billingDimension: 'coffee', usage: 1 });
    setImmediate(() => process.exit(id === undefined ? 7 : 1));`;
  const { errors, end } = await run(program);
  expect(end).toEqual([7, null]);
  expect(errors).toContain('MeterlineWarning: onProblem has thrown: Error: the log is away');
});
