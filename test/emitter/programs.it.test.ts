/** An emitter and the program that it is part of: when that ends, is killed, has a listener that fails, or is told by a signal to end. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { z } from 'zod';
import { testFolder } from '../harness/test-folder.js';
import { receipt, TestCollector } from './fixture.js';

const AGENT = `{ accountId: 'acme', workspace: 'production', resourceType: 'agent', resourceName: 'support' }`;

const folder = testFolder();
let collector: TestCollector;
/** What a request of an emitter waits for before it is answered, by the first segment of its path. */
const responses = new Map<string, () => Promise<void>>();
beforeAll(async () => {
  collector = await TestCollector.start();
  collector.respond = async ({ path, events }) => {
    await responses.get(path.split('/')[1] ?? '')?.();
    return receipt(events);
  };
});
afterAll(() => collector.stop());

function start(program: string, args: readonly string[], stdio: StdioOptions): ChildProcess {
  const code = `import { openEmitter } from '@meterline/emitter';\n${program}`;
  return spawn(process.execPath, ['--input-type=module', '--eval', code, ...args], { stdio });
}

/** @returns how a program ends, and what it says that is wrong */
async function run(program: string, ...args: readonly string[]) {
  const child = start(program, args, ['ignore', 'ignore', 'pipe']);
  const [errors, end] = await Promise.all([child.stderr && text(child.stderr), once(child, 'exit')]);
  return { errors, end };
}

it.concurrent('a program that ends by itself has reported its sums', async () => {
  const program = `
    const meter = await openEmitter({ url: process.argv[1], apiKey: 'key', reportMs: 50, batchMs: 1 });
    for (let n = 0; n < 5; n += 1) meter.add({ ...${AGENT}, billingDimension: 'agent_async_requests_count', usage: 1 });`;
  expect(await run(program, `${collector.url}/sums`)).toEqual({ errors: '', end: [0, null] });
  const sent = collector.received.filter(({ path }) => path.startsWith('/sums/')).flatMap(({ events }) => events);
  expect(sent.map(({ usage }) => usage)).toEqual(['5']);
});

it.concurrent('a program that is killed has lost of a timer what passed since its last report', async () => {
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
  const child = start(program, [folder()], ['ignore', 'pipe', 'inherit']);
  const printed: number[] = [];
  if (child.stdout) {
    for await (const line of createInterface({ input: child.stdout })) {
      printed.push(Number(line));
      if (printed.length === 5) child.kill('SIGKILL');
    }
  }
  const files = (await readdir(folder())).filter((name) => name.endsWith('.jsonl'));
  const lines = (await Promise.all(files.map((file) => readFile(folder(file), 'utf8')))).join('');
  const events = z.array(z.object({ usage: z.string() })).parse(JSON.parse(`[${lines.trim().replaceAll('\n', ',')}]`));
  const total = events.reduce((sum, { usage }) => sum + Number(usage), 0);
  expect(events.length).toBeGreaterThanOrEqual(printed.length);
  expect(total).toBeGreaterThanOrEqual(Math.floor(printed.at(-1) ?? Number.NaN));
});

it.concurrent.each([
  ['at once', `() => { throw new Error('the log is away'); }`],
  ['later', `async () => { throw new Error('the log is away'); }`],
])('a program whose listener for problems fails %s is warned, and goes on', async (_when, listener) => {
  const program = `
    const meter = await openEmitter({ url: 'http://127.0.0.1:9', apiKey: 'key', onProblem: ${listener} });
    const id = meter.record({ ...${AGENT}, billingDimension: 'coffee', usage: 1 });
    setImmediate(() => process.exit(id === undefined ? 7 : 1));`;
  const { errors, end } = await run(program);
  expect(end).toEqual([7, null]);
  expect(errors).toContain('MeterlineWarning: onProblem threw an error: Error: the log is away');
});

/**
 * The emitter of this program closes at SIGTERM. A busy program has work of its own at the signal: it does that until its parent sends a
 * message, and exits with 7.
 */
const CLOSING = `
  const [url, isBusy] = process.argv.slice(1);
  const meter = await openEmitter({ url, apiKey: 'key', batchMs: 600_000 });
  meter.record({ ...${AGENT}, billingDimension: 'agent_async_requests_count', usage: 1 });
  meter.closeOn('SIGTERM', { timeoutMs: 60_000 });
  if (isBusy) process.once('SIGTERM', async () => {
    await meter.close();
    process.once('message', () => process.exit(7));
    process.send('closed');
  });
  else process.on('message', () => undefined);
  process.send('ready');`;

async function startClosing(name: string, isBusy = false): Promise<ChildProcess> {
  const args = [`${collector.url}/${name}`, ...(isBusy ? ['busy'] : [])];
  const child = start(CLOSING, args, ['ignore', 'inherit', 'inherit', 'ipc']);
  await once(child, 'message');
  return child;
}

/** @returns what answers the emitter's request once that is there */
function requestTo(name: string): Promise<() => void> {
  return new Promise((there) => {
    responses.set(name, () => new Promise((respond) => there(respond)));
  });
}

it.concurrent('a program that does nothing else at a signal is ended by it, once all is sent, however often it comes', async () => {
  const request = requestTo('alone');
  const child = await startClosing('alone');
  const end = once(child, 'exit');
  child.kill('SIGTERM');
  const respond = await request;
  child.kill('SIGTERM');
  respond();
  expect(await end).toEqual([null, 'SIGTERM']);
});

it.concurrent('a program that listens once for the signal ends itself, after the emitter has closed', async () => {
  const request = requestTo('busy');
  const child = await startClosing('busy', true);
  const [closed, end] = [once(child, 'message'), once(child, 'exit')];
  child.kill('SIGTERM');
  (await request)();
  await Promise.race([closed, end]);
  if (child.connected) child.send('your work is done');
  expect(await end).toEqual([7, null]);
});
