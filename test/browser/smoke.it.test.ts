/** Six short tests of the cost explorer in a browser. The other tests of the page are long. */
import { createServer, request as sendRequest } from 'node:http';
import { afterAll, expect, it } from '@jest/globals';
import { listening } from '../harness/listening.js';
import { BOXES, FORMULA } from './acme.js';
import {
  columnAppears,
  exported,
  figure,
  tableRows,
  tableTotal,
  totalBecomes,
  useExplorer,
  viewOf,
} from './browser.js';

const explorer = useExplorer();

/** Works like nginx with `location /costs/ { proxy_pass http://api:8080/; }`. */
const proxy = createServer((incoming, response) => {
  const [, path] = /^\/costs(\/.*)$/.exec(incoming.url ?? '') ?? [];
  if (path === undefined) return response.writeHead(404).end();
  const { method, headers } = incoming;
  const forwarded = sendRequest(`${explorer().api.url}${path}`, { method, headers }, (upstream) => {
    response.writeHead(upstream.statusCode ?? 502, upstream.headers);
    upstream.pipe(response);
  });
  return incoming.pipe(forwarded);
});
afterAll(() => void proxy.close());

it('signing in shows the account, and stores the key in the tab but not in the URL', async () => {
  const { api, key } = explorer();
  const { page } = await explorer().visit({ guest: {} });
  await page.locator('input:focus').waitFor();
  await page.getByLabel('API key or access token').fill(`Bearer ${key}`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(tableRows(page)).resolves.toHaveLength(5);
  expect(page.url()).toBe(`${api.url}/?account=acme`);
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(key);
  await page.reload();
  await expect(tableRows(page)).resolves.toHaveLength(5);
});

it('a view with full precision shows every digit, the shares and the total of all groups', async () => {
  const page = await explorer().open('exact=1');
  expect(await tableRows(page)).toEqual([
    ['Agent', '$40.000002', '53.3%'],
    ['Job', '$20.000000000001', '26.7%'],
    ['Sandbox', '$8.515', '11.4%'],
    ['Volume', '$5.00', '6.7%'],
    ['Custom domain', '$1.50', '2.0%'],
  ]);
  expect(await tableTotal(page)).toEqual(['Total of all groups', '$75.015002000001', '']);
  expect(await figure(page, 'Cost').textContent()).toBe('$75.015002000001');
  expect(await figure(page, 'Highest day').textContent()).toBe('$66.500002000001');
  // An estimate is always rounded.
  expect(await figure(page, 'Forecast').textContent()).toMatch(/^\$\d+\.\d\d$/);
});

it('a filter finds names on every page of the API, and accepts several', async () => {
  const page = await explorer().open('group=resource_name&exact=1');
  await page.getByRole('button', { name: /^Filters/ }).click();
  await page.getByRole('combobox', { name: 'Resource', exact: true }).click();
  await page.getByRole('option', { name: 'support $40.00' }).waitFor();
  // These are among the cheapest of 134 groups, on the second page of the API.
  await page.keyboard.type('BOX-01');
  await page.getByRole('button', { name: 'Select all 10' }).click();
  await page.getByRole('button', { name: 'Apply (10)' }).click();
  await totalBecomes(page, '$0.145');
  expect(new URL(page.url()).searchParams.getAll('name')).toHaveLength(10);
  await page.getByRole('button', { name: 'Remove Resource: 10 values' }).click();
  await totalBecomes(page, '$75.015002000001');
});

it('a row opens the next finer breakdown, and the breadcrumb returns to the first view', async () => {
  const page = await explorer().open();
  await page.getByRole('link', { name: 'Agent', exact: true }).click();
  await page.getByRole('link', { name: 'support' }).click();
  await columnAppears(page, 'Billing dimension');
  expect(viewOf(page)).toMatchObject({ group: 'billing_dimension', type: 'agent', name: 'support' });
  await page.getByTitle('Current price: $0.0414 per GB-h').waitFor();
  const crumbs = page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('listitem');
  expect(await crumbs.allTextContents()).toEqual(['All usage', 'Agent', 'support']);
  await page.getByRole('link', { name: 'All usage' }).click();
  await columnAppears(page, 'Resource type');
  expect(viewOf(page)).toEqual({ account: 'acme' });
});

it('CSV exports have the exact cost of every group or bar, and no formulas', async () => {
  const page = await explorer().open('group=resource_name');
  await tableRows(page);
  const { name, lines } = await exported(page, 'Groups');
  expect(name).toBe('meterline-acme-2025-10-17-to-2025-11-15-resource_name.csv');
  expect(lines[0]).toBe('\uFEFFworkspace,resourceType,resourceName,startTime,endTime,costUsd,sharePercent');
  expect(lines).toHaveLength(1 + BOXES + 4);
  const times = '2025-10-17T00:00:00Z,2025-11-15T12:00:00Z';
  expect(lines).toContain(`main,job,nightly,${times},20.000000000001,26.661334`);
  expect(lines).toContain(`main,volume,"'${FORMULA.replaceAll('"', '""')}",${times},5,6.665333`);
  expect(lines.at(-1)).toMatch(/^main,sandbox,box-001,.*,0\.001,/);
  await page.getByLabel('Search groups').fill('nightly');
  await page.getByText('1–1 of 1 group').waitFor();
  const series = await exported(page, 'Time series');
  expect(series.lines).toHaveLength(1 + 30);
  expect(series.lines).toContain('main,job,nightly,2025-11-14T00:00:00Z,daily,20.000000000001');
});

it('the page, the embedded page and the API reference work under a subpath of a proxy', async () => {
  const { key } = explorer();
  const root = `${await listening(proxy)}/costs`;
  const { page } = await explorer().visit({ key, url: `${root}/?account=acme` });
  await expect(tableRows(page)).resolves.toHaveLength(5);
  await page.getByRole('button', { name: 'Copy as' }).click();
  await page.getByText(`${root}/v0/accounts/acme/metrics?`).waitFor();
  const failed: string[] = [];
  page.on('response', (response) => !response.ok() && failed.push(`${response.status()} ${response.url()}`));
  await page.goto(`${root}/embed#key=${key}&view=account%3Dacme`);
  await expect(tableRows(page)).resolves.toHaveLength(5);
  expect(page.url()).toBe(`${root}/embed?account=acme`);
  await page.goto(`${root}/docs`);
  await page.getByRole('heading', { name: /^Meterline/ }).waitFor();
  expect(failed).toEqual([]);
});
