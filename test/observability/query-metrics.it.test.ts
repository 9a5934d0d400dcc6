/** The metrics on the admin port of a query service that runs as a process of its own. */
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { type Product, startProduct } from '../harness/product.js';
import type { HttpProcess } from '../harness/services.js';
import { adminUrl, scrape } from './scrape.js';

jest.setTimeout(180_000);

const WINDOW = 'startTime=2026-01-01T00:00:00Z&endTime=2026-01-02T00:00:00Z';

let product: Product;
let query: HttpProcess;
let url: string;
let key: string;
beforeAll(async () => {
  product = await startProduct();
  key = await product.key('metrics-acme');
  query = await product.startQuery({ ADMIN_PORT: '0' });
  url = await adminUrl(query);
});
afterAll(() => product.close());

async function ask(path: string, init: RequestInit = {}): Promise<number> {
  const response = await fetch(`${query.url}${path}`, { headers: { authorization: `Bearer ${key}` }, ...init });
  await response.arrayBuffer();
  return response.status;
}

/** How many requests were counted under these labels. */
async function requests(route: string, method: string, status: number): Promise<number | undefined> {
  const labels = `route="${route}",method="${method}",status="${status}"`;
  return (await scrape(url)).value(`meterline_http_request_duration_seconds_count{${labels}}`);
}

const METRICS = '/v0/accounts/:accountId/metrics';

it('the metrics of the query service count requests by the route they came to, never by their path', async () => {
  expect(await ask(`/v0/accounts/metrics-acme/metrics?${WINDOW}`)).toBe(200);
  expect(await ask(`/v0/accounts/metrics-acme/metrics?${WINDOW}`)).toBe(200);
  expect(await ask('/v0/accounts/metrics-acme/metrics')).toBe(400);
  expect(await ask(`/v0/accounts/someone-else/metrics?${WINDOW}`)).toBe(403);
  expect(await requests(METRICS, 'GET', 200)).toBe(2);
  expect(await requests(METRICS, 'GET', 400)).toBe(1);
  expect(await requests(METRICS, 'GET', 403)).toBe(1);
  const page = await (await fetch(`${url}/metrics`)).text();
  expect(page).not.toMatch(/metrics-acme|someone-else/);
});

it('the metrics of the query service put whatever has no route under one, and methods of no route under another', async () => {
  expect(await ask('/wp-admin.php')).toBe(404);
  expect(await ask('/v0/nothing')).toBe(404);
  expect(await ask('/v0/accounts', { method: 'BREW' })).toBe(501);
  expect(await ask('/v0/accounts', { method: 'PATCH' })).toBe(405);
  expect(await requests('none', 'GET', 404)).toBe(2);
  expect(await requests('/v0/accounts', 'other', 405)).toBe(1);
});

it('the metrics of the query service time each statement by its name', async () => {
  const count = 'meterline_clickhouse_statement_duration_seconds_count{statement="read_metrics",outcome="ok"}';
  const before = (await scrape(url)).value(count) ?? 0;
  expect(await ask(`/v0/accounts/metrics-acme/metrics/enums/resource-types?${WINDOW}`)).toBe(200);
  expect((await scrape(url)).value(count)).toBe(before + 1);
});

it('the metrics of the query service stand on a port of their own, with a health page', async () => {
  expect((await fetch(`${query.url}/metrics`)).status).toBe(404);
  expect((await fetch(`${url}/v0/accounts`)).status).toBe(404);
  expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: 'ok' });
});
