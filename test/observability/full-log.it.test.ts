/** A disk that takes no more lines costs the log, not the service. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findFreePort } from '@meterline/local-stack';
import { type Product, startProduct } from '../harness/product.js';
import { startWithFullLog, untilAnswered } from './full-log.js';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product.close());

const start = (name: 'ingest' | 'query', variables: Record<string, string> = {}) =>
  startWithFullLog(name, { ...product.env, ...variables });

it.each([
  ['query', '/readyz'],
  ['ingest', '/healthz'],
] as const)('with its log on a full disk, %s starts, answers, and stops with code 0', async (name, path) => {
  const service = await start(name);
  expect(await untilAnswered(service, path)).toBe(200);
  // Each has a line of its own.
  for (let request = 0; request < 20; request += 1) expect(await untilAnswered(service, path)).toBe(200);
  service.child.kill('SIGTERM');
  expect(await service.ended).toEqual({ code: 0, stderr: '' });
});

it('with its log on a full disk, a service that cannot start ends with code 1 and says why', async () => {
  const { ended } = await start('query', { CLICKHOUSE_URL: `http://127.0.0.1:${await findFreePort()}` });
  expect(await ended).toEqual({ code: 1, stderr: expect.stringMatching(/^meterline-query: ClickHouse at .*\n$/) });
});
