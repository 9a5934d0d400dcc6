/** What sums and timers still have when the emitter closes, and there is no room for it. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { UsageEventInput } from '@meterline/catalog';
import { findFreePort } from '@meterline/local-stack';
import { type Emitter, openEmitter, type Problem, type UsageToSum } from './index.js';

const REQUESTS: UsageToSum = {
  accountId: 'acme',
  workspace: 'production',
  resourceType: 'agent',
  resourceName: 'support',
  billingDimension: 'agent_async_requests_count',
  usage: 1,
};
/** There is room for two events. */
const MEMORY = { memoryBytes: 600 };
const SUMS = 9;

let server: Server;
let url: string;
let received: UsageEventInput[];
let problems: Problem[];
beforeEach(async () => {
  received = [];
  problems = [];
  server = createServer(async (request, response) => {
    const events = (await json(request)) as UsageEventInput[];
    received.push(...events);
    const results = events.map((_, index) => ({ index, status: 'accepted' }));
    response.writeHead(202).end(JSON.stringify({ accepted: events.length, refused: 0, results }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  url = typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : '';
});
afterEach(() => void server.close());

async function openWith(options: { url: string; memoryBytes: number }): Promise<Emitter> {
  const onProblem = (problem: Problem) => problems.push(problem);
  return openEmitter({ ...options, apiKey: 'key', onProblem });
}

/** Fills its memory, and then adds sums and runs a timer. @returns how many events are recorded */
async function fill(meter: Emitter): Promise<number> {
  let recorded = 0;
  while (meter.record({ ...REQUESTS, resourceName: `${recorded}` }) !== undefined) recorded += 1;
  for (let n = 0; n < SUMS; n += 1) meter.add({ ...REQUESTS, resourceName: `sum-${n}` });
  const { usage: _, ...sandbox } = REQUESTS;
  meter.start({ ...sandbox, resourceType: 'sandbox', billingDimension: 'sandbox_compute_runtime_gbs', gb: 4 });
  // Of no time it has nothing to report.
  await sleep(5);
  return recorded;
}

it('they are sent after what there was, as soon as that has made room', async () => {
  const meter = await openWith({ url, ...MEMORY });
  const recorded = await fill(meter);
  const { dropped } = meter.counters;
  expect(await meter.close()).toBe(true);
  expect(received.filter(({ resourceName }) => resourceName.startsWith('sum-'))).toHaveLength(SUMS);
  expect(received.filter(({ resourceType }) => resourceType === 'sandbox')).toHaveLength(1);
  const all = recorded + SUMS + 1;
  expect(meter.counters).toMatchObject({ recorded: all, sent: all, dropped, unsent: 0 });
});

it('they are dropped and counted when the time is up, and the emitter is not said to have sent everything', async () => {
  const meter = await openWith({ url: `http://127.0.0.1:${await findFreePort()}`, ...MEMORY });
  const recorded = await fill(meter);
  const { dropped } = meter.counters;
  expect(await meter.close({ timeoutMs: 50 })).toBe(false);
  expect(meter.counters).toMatchObject({ recorded, sent: 0, dropped: dropped + SUMS + 1, unsent: recorded });
});

it('they are dropped at once when there can be no room', async () => {
  const meter = await openWith({ url, memoryBytes: 1 });
  meter.add(REQUESTS);
  expect(await meter.close({ timeoutMs: 60_000 })).toBe(false);
  expect(meter.counters).toMatchObject({ recorded: 0, dropped: 1 });
  expect(problems).toMatchObject([{ code: 'dropped', message: 'usage events are dropped: the emitter is closed' }]);
});
