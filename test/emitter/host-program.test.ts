/** What an emitter does to the program that it is part of: when that does not close it, and when its listener fails. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { json, text } from 'node:stream/consumers';
import { expect, it } from '@jest/globals';
import { z } from 'zod';

const AGENT = `{ accountId: 'acme', workspace: 'production', resourceType: 'agent', resourceName: 'support' }`;

/** @returns how a program ends, and what it says that is wrong */
async function run(program: string, ...args: readonly string[]) {
  const code = `import { openEmitter } from '@meterline/emitter';\n${program}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code, ...args], {
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  const [errors, end] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { errors, end };
}

const body = z.array(z.object({ usage: z.string() }));

it.concurrent('a program that ends by itself has reported its sums', async () => {
  const usages: string[] = [];
  const server = createServer(async (request, response) => {
    const events = body.parse(await json(request));
    for (const { usage } of events) usages.push(usage);
    const results = events.map((_, index) => ({ index, status: 'accepted' }));
    response.writeHead(202).end(JSON.stringify({ accepted: events.length, refused: 0, results }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  const url = typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : '';
  const program = `
    const meter = await openEmitter({ url: process.argv[1], apiKey: 'key', sumMs: 50, batchMs: 1 });
    for (let n = 0; n < 5; n += 1) meter.add({ ...${AGENT}, billingDimension: 'agent_async_requests_count', usage: 1 });`;
  expect(await run(program, url)).toEqual({ errors: '', end: [0, null] });
  server.close();
  expect(usages).toEqual(['5']);
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
