/**
 * Plays the whole trace, with the example, through the real collector, queue, worker and API. Every digit of the totals must agree with an independent
 * calculation (expected-totals.py).
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { runCommand } from '../cli/run-command.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained } from '../harness/queue.js';
import type { HttpProcess } from '../harness/services.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SLICE = `${ROOT}examples/trace-slice`;
const FULL = `${ROOT}../shared/data`;
const FILES = ['azure-llm-2023-code.csv', 'azure-llm-2023-conv.csv'];
const ACCOUNT = 'azure-llm-2023';
const WINDOW = 'startTime=2023-11-16T18:00:00Z&endTime=2023-11-16T20:00:00Z&resolution=hourly';
const TIMEOUT_MS = 180_000;

/** Every number is kept as its text in the body. */
const amounts = z.object({ cost: z.string(), usage: z.string() });
const answer = z.object({
  summary: z.object({ totalCost: z.string(), totalUsage: z.string().optional() }),
  data: z.array(
    z.object({
      workspace: z.string().optional(),
      billingDimension: z.string().optional(),
      summary: amounts.partial({ usage: true }),
      timeseries: z.array(amounts.partial({ usage: true })),
    }),
  ),
});

const expectedTotals = z.record(
  z.enum(['slice', 'full']),
  z.object({
    groups: z.array(
      z.object({
        workspace: z.string(),
        billingDimension: z.string(),
        usage: z.string(),
        cost: z.string(),
        events: z.int(),
      }),
    ),
    totalUsage: z.string(),
    totalCost: z.string(),
    events: z.int(),
  }),
);
const EXPECTED = expectedTotals.parse(JSON.parse(readFileSync(`${ROOT}test/trace/expected-totals.json`, 'utf8')));

const fullIsThere = FILES.every((file) => existsSync(`${FULL}/${file}`));
const DATA = [
  {
    title: fullIsThere
      ? 'a slice of 1,000 requests'
      : 'a slice of 1,000 requests (all there is: no ../shared/data here)',
    directory: SLICE,
    expected: EXPECTED.slice,
  },
  ...(fullIsThere ? [{ title: 'all 28,185 requests', directory: FULL, expected: EXPECTED.full }] : []),
];

describe.each(DATA)('the Azure LLM trace, $title', ({ directory, expected }) => {
  let product: Product;
  let query: HttpProcess;
  let collector: HttpProcess;
  let key: string;
  let emitterKey: string;

  beforeAll(async () => {
    product = await startProduct();
    await product.startIngest({ METERLINE_CONSTANTS: JSON.stringify({ maintenanceEveryMs: 2_000 }) });
    query = await product.startQuery();
    collector = await product.startCollector();
    [key, emitterKey] = [await createKey('admin'), await createKey('emitter')];
  }, TIMEOUT_MS);
  afterAll(() => product.close(), TIMEOUT_MS);

  async function createKey(role: string): Promise<string> {
    const args = ['keys', 'create', '--account', ACCOUNT, '--role', role, '--json'];
    const { stdout } = await runCommand(args, { env: product.env });
    return z.object({ key: z.string() }).parse(JSON.parse(stdout)).key;
  }

  async function ask(parameters: string): Promise<string> {
    const response = await fetch(`${query.url}/v0/accounts/${ACCOUNT}/metrics?${WINDOW}${parameters}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const body = await response.text();
    if (response.status !== 200) throw new Error(`${response.status}: ${body}`);
    return body;
  }

  async function replay(): Promise<void> {
    const files = FILES.map((file) => `${directory}/${file}`);
    const { stdout } = await promisify(execFile)(process.execPath, [`${ROOT}examples/replay-trace.mjs`, ...files], {
      env: { ...process.env, COLLECTOR_URL: collector.url, METERLINE_EMITTER_KEY: emitterKey },
    });
    expect(stdout).toBe(`${expected.events} events of 2 files: ${expected.events} accepted, 0 rejected\n`);
    await drained(product.queue);
  }

  it(
    'adds up exactly, and no further when it is replayed again',
    async () => {
      await replay();
      const grouped = await ask('&groupBy=workspace,billing_dimension');
      const total = await ask('');

      const { summary, data } = answer.parse(exactJson(grouped));
      expect(
        data.map(({ workspace, billingDimension, summary }) => ({ workspace, billingDimension, ...summary })),
      ).toEqual(
        expected.groups
          .map(({ events: _events, ...group }) => group)
          .sort((a, b) => Number(b.cost) - Number(a.cost) || a.workspace.localeCompare(b.workspace)),
      );
      expect(summary).toEqual({ totalCost: expected.totalCost, totalUsage: expected.totalUsage });
      expect(answer.parse(exactJson(total)).summary).toEqual({ totalCost: expected.totalCost });
      for (const { summary, timeseries } of data) {
        expect(timeseries).toHaveLength(2);
        expect(sum(timeseries.map(({ cost }) => cost))).toBe(scaled(summary.cost));
        expect(sum(timeseries.map(({ usage }) => usage))).toBe(scaled(summary.usage));
      }

      await replay();
      expect(await ask('&groupBy=workspace,billing_dimension')).toBe(grouped);
      expect(await ask('')).toBe(total);
    },
    TIMEOUT_MS,
  );
});

/** The body with its numbers as strings: JSON.parse would round them. No string in it holds a quote and a colon. */
function exactJson(body: string): unknown {
  return JSON.parse(body.replace(/":(-?\d[^,}\]]*)/g, '":"$1"'));
}

function sum(decimals: readonly (string | undefined)[]): bigint {
  return decimals.reduce((total, decimal) => total + scaled(decimal), 0n);
}

/** In units of 10^-12. */
function scaled(decimal = ''): bigint {
  const [integer = '', fraction = ''] = decimal.split('.');
  return BigInt(integer + fraction.padEnd(12, '0'));
}
