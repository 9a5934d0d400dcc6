/**
 * Plays the whole trace, with the example, through the real collector, queue, worker and API. Every digit of the totals must agree with an independent
 * calculation (expected-totals.py).
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sumDecimals } from '@meterline/catalog';
import { MeterlineClient } from '@meterline/client';
import { z } from 'zod';
import { type Product, startProduct } from '../harness/product.js';
import { drained } from '../harness/queue.js';
import type { HttpProcess } from '../harness/services.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SLICE = `${ROOT}examples/trace-slice`;
const FULL = `${ROOT}../shared/data`;
const FILES = ['azure-llm-2023-code.csv', 'azure-llm-2023-conv.csv'];
const ACCOUNT = 'azure-llm-2023';
const WINDOW = { startTime: '2023-11-16T18:00:00Z', endTime: '2023-11-16T20:00:00Z', resolution: 'hourly' } as const;
const TIMEOUT_MS = 180_000;

const expectedTotals = z.record(
  z.enum(['slice', 'full']),
  z.object({
    groups: z.array(
      z.object({
        ...{ workspace: z.string(), billingDimension: z.string() },
        ...{ usage: z.string(), cost: z.string(), events: z.int() },
      }),
    ),
    ...{ totalUsage: z.string(), totalCost: z.string(), events: z.int() },
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
  let collector: HttpProcess;
  let client: MeterlineClient;
  let emitterKey: string;

  beforeAll(async () => {
    product = await startProduct();
    await product.startIngest({ METERLINE_CONSTANTS: JSON.stringify({ maintenanceEveryMs: 2_000 }) });
    const { url } = await product.startQuery();
    collector = await product.startCollector();
    client = new MeterlineClient({ baseUrl: url, credential: await product.key(ACCOUNT) });
    emitterKey = await product.key(ACCOUNT, 'emitter');
  }, TIMEOUT_MS);
  afterAll(() => product.close(), TIMEOUT_MS);

  async function replay(): Promise<void> {
    const files = FILES.map((file) => `${directory}/${file}`);
    const { stdout } = await promisify(execFile)(process.execPath, [`${ROOT}examples/replay-trace.mjs`, ...files], {
      env: { ...process.env, COLLECTOR_URL: collector.url, METERLINE_EMITTER_KEY: emitterKey },
    });
    expect(stdout).toBe(`${expected.events} events of 2 files: ${expected.events} accepted, 0 rejected\n`);
    await drained(product.queue);
  }

  it(
    'the Azure LLM trace adds up exactly, and no further when it is replayed again',
    async () => {
      const read = () => client.metrics(ACCOUNT, { ...WINDOW, groupBy: ['workspace', 'billing_dimension'] });
      await replay();
      const grouped = await read();
      const groups = grouped.data.map(({ workspace, billingDimension, summary }) => ({
        ...{ workspace, billingDimension },
        ...summary,
      }));
      expect(groups).toEqual(
        expected.groups
          .map(({ events: _events, ...group }) => group)
          .sort((a, b) => Number(b.cost) - Number(a.cost) || a.workspace.localeCompare(b.workspace)),
      );
      expect(grouped.summary).toEqual({ totalCost: expected.totalCost, totalUsage: expected.totalUsage });
      const total = await client.metrics(ACCOUNT, WINDOW);
      expect(total.summary).toEqual({ totalCost: expected.totalCost });
      for (const { summary, timeseries } of grouped.data) {
        expect(timeseries).toHaveLength(2);
        expect(sumDecimals(timeseries.map(({ cost }) => cost))).toBe(summary.cost);
        expect(sumDecimals(timeseries.map(({ usage }) => usage))).toBe(summary.usage);
      }
      await replay();
      expect([await read(), await client.metrics(ACCOUNT, WINDOW)]).toEqual([grouped, total]);
    },
    TIMEOUT_MS,
  );
});
