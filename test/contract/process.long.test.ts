/** How a query process ends. Why one does not start is in test/e2e/start-up. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type Product, startProduct } from '../harness/product.js';
import { type HttpProcess, launchService, type ServiceProcess } from '../harness/services.js';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product.close());

async function expectCleanEnd({ exited, errorLines }: ServiceProcess): Promise<void> {
  expect(await exited).toEqual({ code: 0, signal: null });
  expect(errorLines()).toEqual([]);
}

const kill =
  (signal: NodeJS.Signals) =>
  async ({ child, entries, exited }: HttpProcess) => {
    child.kill(signal);
    await exited;
    expect(entries().at(-1)).toMatchObject({ event: 'stopped' });
  };

it.each<[string, (query: HttpProcess) => unknown]>([
  ['after SIGTERM', kill('SIGTERM')],
  ['after SIGINT', kill('SIGINT')],
  ['when its parent goes away', ({ child }) => child.stdin?.destroy()],
  [
    'when the reader of its log is gone',
    ({ child }) => {
      child.stdout?.destroy();
      child.kill('SIGTERM');
    },
  ],
  [
    'when the reader of its log has stalled',
    async ({ child, url }) => {
      child.stdout?.pause();
      const long = `${url}/${'x'.repeat(4_000)}`;
      const statuses = await Promise.all(Array.from({ length: 100 }, async () => (await fetch(long)).status));
      expect(new Set(statuses)).toEqual(new Set([404]));
      child.kill('SIGTERM');
      await once(child, 'exit');
      child.stdout?.resume();
    },
  ],
])('a query process stops with code 0 %s', async (_when, end) => {
  const query = await product.startQuery();
  expect((await fetch(`${query.url}/readyz`)).status).toBe(200);
  await end(query);
  await expectCleanEnd(query);
});

it('a query process ends when its parent goes away while it starts', async () => {
  const query = launchService('query', { PORT: '0', ...product.env });
  query.child.stdin?.destroy();
  // Before it listens to signals SIGTERM ends it.
  expect([0, null]).toContain((await query.exited).code);
});

it('after a request to stop the process is not ready, and closes connections after their responses', async () => {
  const { url, child, kill, errorLines } = await product.startQuery({ STOP_DELAY_MS: '60000' });
  child.kill('SIGTERM');
  let response = await fetch(`${url}/readyz`);
  while (response.status === 200) response = await fetch(`${url}/readyz`);
  expect([response.status, response.headers.get('connection'), await response.json()]).toEqual([
    503,
    'close',
    expect.objectContaining({ error: 'not_ready', message: expect.stringContaining('is stopping') }),
  ]);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  await kill();
  expect(errorLines()).toEqual([]);
});
