/** The cost explorer in a browser: signing in, figures, filters, the comparison. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { BrowserContext, Page, Request } from 'playwright-core';
import { event } from '../harness/events.js';
import {
  chooseOption,
  closePages,
  newContext,
  setFilter,
  showView,
  tableRows,
  tableTotal,
  unfoldFilters,
  viewOf,
  visit,
} from './browser.js';
import { figure, useExplorer } from './explorer-page.js';

const explorer = useExplorer();

describe('signing in', () => {
  /** A browser in which nobody is signed in yet. */
  let guest: BrowserContext;
  beforeAll(async () => {
    guest = await newContext(explorer().browser);
  });
  afterEach(() => closePages(guest));
  afterAll(() => guest.close());

  it('signing in shows the account, keeps the key for the tab, and never in the URL', async () => {
    const { page } = await visit(guest, explorer().api.url);
    await page.locator('input:focus').waitFor();
    await page.getByLabel('API key or access token').fill(`Bearer ${explorer().key}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(tableRows(page)).resolves.toHaveLength(5);
    expect(page.url()).toBe(`${explorer().api.url}/?account=acme`);
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(explorer().key);
    await page.reload();
    await expect(tableRows(page)).resolves.toHaveLength(5);
  });

  it('signing in is not needed in a tab that is opened from a link; signing out ends it in all of them', async () => {
    const { page } = await visit(guest, explorer().api.url, { key: explorer().key, view: 'account=acme' });
    await tableRows(page);
    const { page: linked } = await visit(guest, explorer().api.url, { view: 'account=acme&group=resource_name' });
    expect((await tableRows(linked))[0]?.[0]).toBe('supportmain · Agent');
    // A link to what the first tab does not show gets no key from it.
    const { page: foreign } = await visit(guest, explorer().api.url, { view: 'account=initech' });
    await foreign.getByLabel('API key or access token').waitFor();
    await linked.getByRole('button', { name: 'Sign out' }).click();
    for (const tab of [linked, page]) await tab.getByLabel('API key or access token').waitFor();
    await page.reload();
    await page.getByLabel('API key or access token').waitFor();
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain('mlk_');
  });
});

it('the figures round the same way everywhere, and have every digit on hover', async () => {
  const page = await explorer().open();
  expect((await tableTotal(page))[1]).toBe('$75.02');
  expect(await figure(page, 'Cost').textContent()).toBe('$75.02');
  expect(await figure(page, 'Month to date').textContent()).toBe('$75.02');
  expect(await figure(page, 'Cost').locator('span').getAttribute('title')).toBe('$75.015002000001');
  const agent = page
    .getByRole('row', { name: /^Agent/ })
    .locator('td span')
    .first();
  expect([await agent.textContent(), await agent.getAttribute('title')]).toEqual(['$40.00', '$40.000002']);
});

it('the figures are of one moment: no question of a screen goes beyond it', async () => {
  const page = await explorer().open();
  const ends: string[] = [];
  const record = (request: Request) => ends.push(new URL(request.url()).searchParams.get('endTime') ?? '');
  page.on('request', record);
  await showView(page, 'account=acme&period=12m&compare=period');
  await page.getByRole('columnheader', { name: '12 months earlier' }).waitFor();
  page.off('request', record);
  expect(ends.length).toBeGreaterThan(2);
  expect(ends.filter((end) => end > '2025-11-15T12:00:00Z')).toEqual([]);
});

it('the figures are read again each minute, but not where that would store all groups each time', async () => {
  const { api, context, key } = explorer();
  const { page } = await visit(context, api.url, { key, view: 'account=acme&live=1&sort=name&group=resource_name' });
  await page.getByText('1–25 of 134 groups').waitFor();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.evaluate(() => {
    const later = Date.now() + 120_000;
    Date.now = () => later;
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await page.getByText('as of 12:00:00 UTC, paused').waitFor();
  expect(asked).toEqual([]);
  const read = page.waitForRequest(/\/metrics\?/);
  await showView(page, 'account=acme&live=1&group=resource_name');
  const first = await read;
  await page.getByText('as of 12:02:00 UTC').waitFor();
  const again = page.waitForRequest(/\/metrics\?/);
  await page.getByRole('button', { name: /^Refresh/ }).click();
  expect([first.headers()['cache-control'], (await again).headers()['cache-control']]).toEqual([
    'max-age=15',
    'max-age=0',
  ]);
});

it('the figures are exact by one switch, with shares, and a total of all groups', async () => {
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
});

it('the figures of the chart are there as a table, where the other groups are the rest to the last digit', async () => {
  const page = await explorer().open('group=resource_name&show=table&exact=1');
  const chart = page.getByRole('region', { name: 'Over time' });
  await chart.locator('tfoot tr').waitFor();
  const texts = (selector: string) => chart.locator(selector).allTextContents();
  expect((await texts('thead th')).slice(0, 4)).toEqual(['Time (UTC)', 'Total', 'support', 'nightly']);
  expect((await texts('thead th')).at(-1)).toBe('All other groups');
  // 8.515 for all boxes, less the six that are shown: 0.765.
  expect((await texts('tfoot tr > *')).at(-1)).toBe('$7.75');
  expect((await texts('tfoot tr > *'))[1]).toBe('$75.015002000001');
  expect(await texts('tbody tr:last-child th')).toEqual(['Sat, 15 Nov 2025 so far']);
});

it('the figures that are tiny are not rounded to nothing', async () => {
  const page = await explorer().open('group=billing_dimension&type=agent');
  expect(await tableRows(page)).toEqual(
    [
      ['Agent compute', '$40.00', expect.anything(), '0.28 GB-h', '$144.00 per GB-h'],
      ['Agent async requests', '$0.000002', '<0.1%', '7 events', '$0.2857 per 1,000,000 events'],
    ].map(([label, ...cells]) => [`${label}Agent`, ...cells]),
  );
});

it('a filter finds names by a part of them among all, and takes several', async () => {
  const page = await explorer().open('group=resource_name&exact=1');
  await page.getByRole('button', { name: /^Filters/ }).click();
  await page.getByRole('combobox', { name: 'Resource', exact: true }).click();
  await page.getByRole('option', { name: 'support $40.00' }).waitFor();
  // The cheapest of 134: they are on the second page of the API.
  await page.keyboard.type('BOX-01');
  await page.getByRole('button', { name: 'Choose these 10' }).click();
  await page.getByRole('button', { name: 'Apply (10)' }).click();
  await page.getByRole('row', { name: 'Total of all groups $0.145' }).waitFor();
  expect(new URL(page.url()).searchParams.getAll('name')).toHaveLength(10);
  await page.getByRole('button', { name: 'Remove Resource: 10 values' }).click();
  await page.getByRole('row', { name: 'Total of all groups $75.015002000001' }).waitFor();
});

it('a filter leaves out what is chosen, also one of more names than a filter may have values', async () => {
  const page = await explorer().open('group=none&exact=1');
  await setFilter(page, 'Workspace', { values: ['staging'], mode: 'All but' });
  await page.getByRole('row', { name: 'Total of all groups $70.725002000001' }).waitFor();
  expect(viewOf(page)).toMatchObject({ 'not-workspace': 'staging' });
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await setFilter(page, 'Resource', { values: ['support'], mode: 'All but' });
  await page.getByRole('row', { name: 'Total of all groups $35.015' }).waitFor();
  await page.getByRole('button', { name: 'Copy as' }).click();
  expect(await page.locator('.copy pre').textContent()).toContain('excludeResourceName=support');
  await page.keyboard.press('Escape');
  await setFilter(page, 'Instance', { values: ['no instance id'], mode: 'All but' });
  await page.getByRole('row', { name: 'Total of all groups $8.515' }).waitFor();
});

it.each([
  [
    'has more values than the API takes',
    Array.from({ length: 101 }, (_, index) => `not-name=n${index}`),
    'The service refused the request',
  ],
  [
    'leaves nothing',
    ['sandbox', 'agent', 'job', 'mcp_server', 'volume', 'custom_domain'].map((type) => `not-type=${type}`),
    'Nothing matches these filters',
  ],
])('a filter in a link that %s is named', async (_what, filters, title) => {
  const page = await explorer().open(['group=none', ...filters].join('&'));
  // A link is opened in a new tab, which asks before the page renders.
  await page.reload();
  await page.getByRole('heading', { name: title }).waitFor();
});

it('a filter is applied by a click outside its list and by Enter, and not by Escape', async () => {
  const page = await explorer().open('group=none');
  const tick = async () => {
    await page.getByRole('combobox', { name: 'Type', exact: true }).click();
    await page.getByRole('option', { name: 'Job' }).click();
  };
  await unfoldFilters(page);
  await tick();
  await page.keyboard.press('Escape');
  await page.locator('.panel:visible').waitFor({ state: 'detached' });
  expect(viewOf(page)).toEqual({ account: 'acme', group: 'none' });
  await tick();
  await page.getByRole('heading', { name: 'Groups' }).click();
  await page.getByText('Type: Job').waitFor();
  expect(viewOf(page)).toMatchObject({ type: 'job' });
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await page.getByRole('combobox', { name: 'Resource', exact: true }).click();
  await page.getByRole('option', { name: /^support/ }).click();
  await page.keyboard.type('nobody');
  await page.keyboard.press('Enter');
  await page.getByText('Resource: support').waitFor();
});

it('a filter changes nothing when its list is opened and closed', async () => {
  const page = await explorer().open('group=resource_name&page=2');
  await tableRows(page);
  await unfoldFilters(page);
  await page.getByRole('combobox', { name: 'Type', exact: true }).click();
  await page.getByRole('option', { name: 'Job' }).waitFor();
  await page.getByRole('heading', { name: 'Groups' }).click();
  await page.locator('.panel:visible').waitFor({ state: 'detached' });
  expect(viewOf(page)).toMatchObject({ page: '2' });
});

it('a filter by workspace, type and dimension leaves what fits', async () => {
  const page = await explorer().open('group=none');
  await setFilter(page, 'Workspace', { values: ['staging'] });
  await setFilter(page, 'Type', { values: ['Sandbox', 'Job'] });
  await page.getByRole('row', { name: 'Total of all groups $4.29' }).waitFor();
});

it('the comparison with the period before goes back whole weeks, in money and in percent, in sum and for each row', async () => {
  const page = await explorer().open();
  await chooseOption(page, 'Compare with', 'The period before');
  await page.getByRole('columnheader', { name: '5 weeks earlier' }).waitFor();
  // The rows of the period before and its sum come with answers of their own, in any order.
  for (const name of ['+$8.00 +25.0%', '+$43.02 +134.4%']) await page.getByRole('cell', { name }).waitFor();
  await expect(tableRows(page)).resolves.toContainEqual(['Agent', '$40.00', '53.3%', '$32.00', '+$8.00 +25.0%']);
  await expect(tableRows(page)).resolves.toContainEqual(['Volume', '$5.00', '6.7%', '$0.00', '+$5.00 new']);
  expect((await tableTotal(page)).slice(3)).toEqual(['$32.00', '+$43.02 +134.4%']);
  expect(await figure(page, 'Change').textContent()).toBe('+$43.02 +134.4%');
  await page.getByText('5 weeks earlier: $32.00 in 12 Sept – 11 Oct 12:00').waitFor();
  expect(viewOf(page)).toEqual({ account: 'acme', compare: 'period' });
});

it('the comparison with the period before finds a group among thousands that cost more then, and reads no other', async () => {
  const { api, context } = explorer();
  const names = Array.from({ length: 5_001 }, (_, index) => `box-${index}`);
  const then = { accountId: 'many', at: '2025-11-07T09:00:00Z' };
  await api.seed([
    ...names.map((name) =>
      event({ ...then, resourceName: name, resourceUuid: name, cost: name === 'box-0' ? '1' : '2' }),
    ),
    event({ accountId: 'many', resourceName: 'box-0', cost: '3', at: '2025-11-14T09:00:00Z' }),
    event({ accountId: 'many', resourceName: 'fresh', cost: '2', at: '2025-11-14T09:00:00Z' }),
  ]);
  const cursors: string[] = [];
  const prepare = async (shown: Page) =>
    shown.on('request', (request) => cursors.push(new URL(request.url()).searchParams.get('cursor') ?? ''));
  const view = 'account=many&period=7d&group=resource_name&compare=period';
  const { page } = await visit(context, api.url, { key: await api.key('many'), view, prepare });
  await page.getByRole('cell', { name: '+$2.00 +200.0%' }).waitFor();
  expect((await tableRows(page)).map((cells) => [cells[1], ...cells.slice(-2)])).toEqual([
    ['$3.00', '$1.00', '+$2.00 +200.0%'],
    ['$2.00', '$0.00', '+$2.00 new'],
  ]);
  // The service stores a result when a page after its first is asked for.
  expect(cursors.filter((cursor) => cursor !== '')).toEqual([]);
});
