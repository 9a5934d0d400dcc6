/** Plays the whole trace, with the example, through the real collector, queue, worker and API. Each response must be the oracle's, digit for digit. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { bearer, metricsPath } from '../harness/api.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained } from '../harness/queue.js';
import type { HttpProcess } from '../harness/services.js';
import { Oracle } from '../oracle/model.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SLICE = `${ROOT}examples/trace-slice`;
const FULL = `${ROOT}../shared/data`;
const WORKSPACES = ['code', 'conv'];
const ACCOUNT = 'azure-llm-2023';
const WINDOW = { startTime: '2023-11-16T18:00:00Z', endTime: '2023-11-16T20:00:00Z', resolution: 'hourly' } as const;
const QUERIES = [WINDOW, { ...WINDOW, groupBy: 'workspace,billing_dimension' }];

const fileOf = (folder: string, workspace: string) => `${folder}/azure-llm-2023-${workspace}.csv`;

const fullIsThere = WORKSPACES.every((workspace) => existsSync(fileOf(FULL, workspace)));
/** What they cost was computed by a program in another language. */
const DATA = [
  {
    title: fullIsThere
      ? 'a slice of 1,000 requests'
      : 'a slice of 1,000 requests (all there is: no ../shared/data here)',
    folder: SLICE,
    cost: '4.275576528',
  },
  ...(fullIsThere ? [{ title: 'all 28,185 requests', folder: FULL, cost: '127.077139896' }] : []),
];

/** The oracle has the events of the example, under other ids. */
function oracleOf(folder: string): Oracle {
  const oracle = new Oracle();
  for (const workspace of WORKSPACES) {
    const [, ...requests] = readFileSync(fileOf(folder, workspace), 'utf8').trimEnd().split(/\r?\n/);
    for (const request of requests) {
      const [time = '', context, generated] = request.split(',');
      const accept = (billingDimension: string, usage: number) =>
        oracle.accept({
          ...{ eventId: randomUUID(), accountId: ACCOUNT, timestamp: `${time.replace(' ', 'T')}Z` },
          ...{ workspace, resourceType: 'agent', resourceName: workspace, billingDimension, usage },
        });
      accept('agent_async_requests_count', 1);
      // 80 GB for 0.0002 s a token of the context and 0.03 s a generated one.
      accept('agent_compute_runtime_gbs', (80 * (2 * Number(context) + 300 * Number(generated))) / 10_000);
    }
  }
  return oracle;
}

describe.each(DATA)('the Azure LLM trace, $title', ({ folder, cost }) => {
  let product: Product;
  let collector: HttpProcess;
  let query: HttpProcess;
  let key: string;
  let emitterKey: string;

  beforeAll(async () => {
    product = await startProduct();
    await product.startIngest({ METERLINE_CONSTANTS: JSON.stringify({ maintenanceEveryMs: 2_000 }) });
    query = await product.startQuery();
    collector = await product.startCollector();
    key = await product.key(ACCOUNT);
    emitterKey = await product.key(ACCOUNT, 'emitter');
  });
  afterAll(() => product.close());

  it('the Azure LLM trace adds up exactly, and no further when it is replayed again', async () => {
    const oracle = oracleOf(folder);
    const events = oracle.stored().length;
    const files = WORKSPACES.map((workspace) => fileOf(folder, workspace));
    for (let time = 0; time < 2; time += 1) {
      const { stdout } = await promisify(execFile)(process.execPath, [`${ROOT}examples/replay-trace.mjs`, ...files], {
        env: { ...process.env, COLLECTOR_URL: collector.url, METERLINE_EMITTER_KEY: emitterKey },
      });
      expect(stdout).toBe(`${events} events from 2 files: ${events} accepted, 0 rejected\n`);
      await drained(product.queue);
      for (const wanted of QUERIES) {
        const response = await fetch(query.url + metricsPath(ACCOUNT, wanted), bearer(key));
        const text = await response.text();
        expect([text]).toEqual(oracle.pages(ACCOUNT, wanted));
        expect(text).toContain(`"totalCost":${cost}`);
      }
    }
  });
});
