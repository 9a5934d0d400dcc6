/** Tests the cost explorer in a browser: sign-in, figures, filters, comparison, all accounts together. */
import { expect, it } from '@jest/globals';
import { BUILT_IN_RESOURCE_TYPES } from '@meterline/catalog';
import { MeterlineClient } from '@meterline/client';
import type { Page, Request } from 'playwright-core';
import { event } from '../harness/events.js';
import {
  choose,
  chooseOption,
  columnAppears,
  exported,
  figure,
  setFilter,
  showView,
  signOut,
  tableRows,
  tableTotal,
  totalBecomes,
  unfoldFilters,
  useExplorer,
  viewOf,
  visitIn,
} from './browser.js';

const explorer = useExplorer();

it('a tab opened from a link needs no sign-in, and a sign-out ends the session in all tabs', async () => {
  const { api, key } = explorer();
  const { page } = await explorer().visit({ guest: {}, key, view: 'account=acme' });
  await tableRows(page);
  const another = async (view: string) => (await visitIn(page.context(), api.url, { view })).page;
  const linked = await another('account=acme&group=resource_name');
  expect((await tableRows(linked))[0]?.[0]).toBe('supportmain · Agent');
  // The first tab shares its key only with links to its own account.
  const foreign = await another('account=initech');
  await foreign.getByLabel('API key or access token').waitFor();
  await signOut(linked);
  for (const tab of [linked, page]) await tab.getByLabel('API key or access token').waitFor();
  await page.reload();
  await page.getByLabel('API key or access token').waitFor();
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain('mlk_');
});

it('figures are rounded the same way everywhere, and show every digit on hover', async () => {
  const page = await explorer().open();
  expect((await tableTotal(page))[1]).toBe('$75.02');
  expect(await figure(page, 'Month to date').textContent()).toBe('$75.02');
  expect(await figure(page, 'Cost').locator('span').getAttribute('title')).toBe('$75.015002000001');
  const agent = page
    .getByRole('row', { name: /^Agent/ })
    .locator('td span')
    .first();
  expect([await agent.textContent(), await agent.getAttribute('title')]).toEqual(['$40.00', '$40.000002']);
});

it('all requests of a screen end at the same time', async () => {
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

it('auto-refresh reads the figures every minute, and pauses if the service would store all groups', async () => {
  const view = 'account=acme&live=1&sort=name&group=resource_name';
  const { page } = await explorer().visit({ key: explorer().key, view });
  await page.getByText('1–25 of 134 groups').waitFor();
  const requested: string[] = [];
  page.on('request', (request) => requested.push(request.url()));
  await page.evaluate(() => {
    const later = Date.now() + 120_000;
    Date.now = () => later;
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await page.getByText('as of 12:00:00 UTC (auto-refresh paused)').waitFor();
  expect(requested).toEqual([]);
  const read = page.waitForRequest(/\/metrics\?/);
  await showView(page, 'account=acme&live=1&group=resource_name');
  const first = await read;
  await page.getByText('as of 12:02:00 UTC').waitFor();
  const again = page.waitForRequest(/\/metrics\?/);
  await page.getByRole('button', { name: /^Refresh/ }).click();
  const ages = [first, await again].map((request) => request.headers()['cache-control']);
  expect(ages).toEqual(['max-age=15', 'max-age=0']);
  // An open list of values is not read again either.
  await unfoldFilters(page);
  await page.getByRole('group', { name: 'Filters' }).getByRole('combobox', { name: 'Resource', exact: true }).click();
  await page.getByRole('option', { name: 'nightly' }).waitFor();
  requested.length = 0;
  await page.evaluate(() => {
    const later = Date.now() + 120_000;
    Date.now = () => later;
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await page.getByText('as of 12:04:00 UTC').waitFor();
  expect(requested.filter((url) => /resolution=monthly/.test(url))).toEqual([]);
  expect(requested.filter((url) => /12%3A02.*groupBy=resource_name/.test(url))).toEqual([]);
});

it('the data of the chart is available as a table, in which the other groups are exact', async () => {
  const page = await explorer().open('group=resource_name&show=table&exact=1');
  const chart = page.getByRole('region', { name: 'Over time' });
  await chart.locator('tfoot tr').waitFor();
  const texts = (selector: string) => chart.locator(selector).allTextContents();
  expect((await texts('thead th')).slice(0, 4)).toEqual(['Time (UTC)', 'Total', 'support', 'nightly']);
  expect((await texts('thead th')).at(-1)).toBe('All other groups');
  // All boxes cost 8.515, and the six listed boxes cost 0.765.
  expect((await texts('tfoot tr > *')).at(-1)).toBe('$7.75');
  expect((await texts('tfoot tr > *'))[1]).toBe('$75.015002000001');
  expect(await texts('tbody tr:last-child th')).toEqual(['Sat, 15 Nov 2025 so far']);
});

it('tiny costs are not rounded to zero, and have usage and price', async () => {
  const page = await explorer().open('group=billing_dimension&type=agent');
  expect(await tableRows(page)).toEqual([
    ['Agent computeAgent', '$40.00', expect.anything(), '0.28 GB-h', '$144.00 per GB-h'],
    ['Agent async requestsAgent', '$0.000002', '<0.1%', '7 events', '$0.2857 per 1,000,000 events'],
  ]);
});

it('a filter can exclude values, and its query is copied without the key', async () => {
  const page = await explorer().open('group=none&exact=1');
  await setFilter(page, 'Workspace', { values: ['staging'], mode: 'Exclude' });
  await totalBecomes(page, '$70.725002000001');
  expect(viewOf(page)).toMatchObject({ 'not-workspace': 'staging' });
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await setFilter(page, 'Resource', { values: ['support'], mode: 'Exclude' });
  await totalBecomes(page, '$35.015');
  await page.getByRole('button', { name: 'Copy as' }).click();
  const command = (await page.locator('.copy pre').textContent()) ?? '';
  const [, url = ''] = /'(http[^']+)'/.exec(command) ?? [];
  const response = await fetch(url, { headers: { authorization: `Bearer ${explorer().key}` } });
  expect(await response.text()).toContain('"totalCost":35.015');
  expect(command).not.toContain(explorer().key);
  await page.keyboard.press('Escape');
  await setFilter(page, 'Instance', { values: ['no instance ID'], mode: 'Exclude' });
  await totalBecomes(page, '$8.515');
});

it.each([
  [
    'has more values than the API takes',
    Array.from({ length: 101 }, (_, index) => `not-name=n${index}`),
    'The service rejected the request',
  ],
  ['leaves nothing', BUILT_IN_RESOURCE_TYPES.map((type) => `not-type=${type}`), 'No usage matches these filters'],
])('a filter in a link that %s has an explanation', async (_what, filters, title) => {
  const page = await explorer().open(['group=none', ...filters].join('&'));
  // A new tab sends its queries before it has rendered.
  await page.reload();
  await page.getByRole('heading', { name: title }).waitFor();
});

it('a filter is applied by a click outside its list or by Enter, but not by Escape or without a change', async () => {
  const page = await explorer().open('group=resource_name&page=2');
  await tableRows(page);
  const opened = () => page.getByRole('combobox', { name: 'Resource type', exact: true }).click();
  const closed = () => page.locator('.panel:visible').waitFor({ state: 'detached' });
  const job = page.getByRole('option', { name: 'Job' });
  const outside = () => page.getByRole('heading', { name: 'Groups' }).click();
  await unfoldFilters(page);
  await opened();
  await job.waitFor();
  await outside();
  await closed();
  await opened();
  await job.click();
  await page.keyboard.press('Escape');
  await closed();
  expect(viewOf(page)).toEqual({ account: 'acme', group: 'resource_name', page: '2' });
  await opened();
  await job.click();
  await outside();
  await page.getByText('Resource type: Job').waitFor();
  expect(viewOf(page)).toMatchObject({ type: 'job' });
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await page.getByRole('combobox', { name: 'Resource', exact: true }).click();
  await page.getByRole('option', { name: /^support/ }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('combobox', { name: 'Resource', exact: true }).click();
  await page.keyboard.type('night');
  await page.getByRole('option', { name: /^support/ }).waitFor({ state: 'detached' });
  await page.keyboard.press('Enter');
  await page.getByText('Resource: nightly').waitFor();
});

it('the comparison moves back by whole weeks, and shows amounts and percentages in total and for each row', async () => {
  const page = await explorer().open();
  await chooseOption(page, 'Compare with', 'Previous period');
  await page.getByRole('columnheader', { name: '5 weeks earlier' }).waitFor();
  // The previous rows and the previous total arrive in separate responses, in any order.
  for (const name of ['+$8.00 +25.0%', '+$43.02 +134.4%']) await page.getByRole('cell', { name }).waitFor();
  const rows = await tableRows(page);
  expect(rows).toContainEqual(['Agent', '$40.00', '53.3%', '$32.00', '+$8.00 +25.0%']);
  expect(rows).toContainEqual(['Volume', '$5.00', '6.7%', '$0.00', '+$5.00 new']);
  expect((await tableTotal(page)).slice(3)).toEqual(['$32.00', '+$43.02 +134.4%']);
  expect(await figure(page, 'Change').textContent()).toBe('+$43.02 +134.4%');
  await page.getByText('5 weeks earlier: $32.00 in 12 Sept – 11 Oct 12:00').waitFor();
  expect(await page.getByText(/weekdays differ/).count()).toBe(0);
  // Some captions wrap, but all amounts are aligned.
  const tops = await page
    .locator('.figure-value')
    .evaluateAll((all) => all.map((each) => each.getBoundingClientRect().top));
  expect(new Set(tops).size).toBe(1);
  expect(viewOf(page)).toEqual({ account: 'acme', compare: 'period' });
  // An edge in the color of the card below the line keeps it visible over the bars.
  const [edge, line] = await Promise.all(
    ['.chart-previous-edge', '.chart-previous'].map((part) => page.locator(part).getAttribute('d')),
  );
  expect(edge).toBe(line);
  await showView(page, 'account=acme&compare=months');
  await page.getByText(/^The line compares the same dates, so weekdays differ\./).waitFor();
  await showView(page, 'account=acme&compare=months&cumulative=1');
  await page.getByRole('heading', { name: 'Cumulative cost by resource type' }).waitFor();
  expect(await page.getByText(/weekdays differ/).count()).toBe(0);
});

it('a month is compared with the previous month, and one command copies both', async () => {
  const page = await explorer().open('from=2025-11-01T00:00:00Z&to=2025-12-01T00:00:00Z&compare=period');
  await page.getByText('1 month earlier: $32.00 in 1 Oct – 15 Oct 12:00').waitFor();
  await showView(page, 'account=acme&period=last-month&compare=period');
  await page.getByText('1 month earlier: $0.00 in 1 Sept – 30 Sept').waitFor();
  await page.getByRole('button', { name: 'Copy as' }).click();
  await page.getByRole('button', { name: 'Command line' }).click();
  const command = (await page.locator('.copy pre').textContent()) ?? '';
  expect(command.match(/meterline metrics/g)).toHaveLength(1);
  expect(command).toMatch(/--month 2025-10 .*--compare /s);
});

it('all accounts can be shown, compared and exported together, and a row opens its account', async () => {
  const { api } = explorer();
  await api.key('globex');
  const desk = { resourceType: 'agent', resourceName: 'desk', billingDimension: 'agent_compute_runtime_gbs' } as const;
  await api.seed([event({ ...desk, accountId: 'globex', cost: '100', at: '2025-11-14T09:00:00Z' })]);
  const key = await api.key(undefined, 'operator');
  const provisioner = new MeterlineClient({ baseUrl: api.url, credential: await api.key(undefined, 'provisioner') });
  await provisioner.nameAccount('globex', 'Globex Corp.');
  const { page } = await explorer().visit({ key, view: 'account=acme&period=month' });
  await tableRows(page);
  await choose(page, 'Account', 'All accounts');
  await page.getByRole('heading', { name: 'Cost by account' }).waitFor();
  expect(viewOf(page)).toEqual({ accounts: 'all', period: 'month', group: 'account' });
  expect(await tableRows(page)).toEqual([
    ['Globex Corp. (globex)', '$100.00', '57.1%'],
    ['acme', '$75.02', '42.9%'],
  ]);
  await page.getByRole('list', { name: 'Legend' }).getByText('Globex Corp. (globex)').waitFor();
  await page.getByRole('searchbox', { name: 'Search groups' }).fill('corp');
  await page.getByRole('rowheader', { name: '1 group found' }).waitFor();
  await page.getByRole('searchbox', { name: 'Search groups' }).fill('');
  await setFilter(page, 'Resource type', { values: ['Agent'] });
  await choose(page, 'Then by', 'Billing dimension');
  await page.getByRole('columnheader', { name: 'Account' }).waitFor();
  expect((await tableRows(page)).map((cells) => cells.slice(0, 3))).toEqual([
    ['Globex Corp. (globex)Agent computeAgent', 'Agent compute', '$100.00'],
    ['acmeAgent computeAgent', 'Agent compute', '$40.00'],
    ['acmeAgent async requestsAgent', 'Agent async requests', '$0.000002'],
  ]);
  await page.getByRole('link', { name: 'acme' }).first().click();
  await page.getByRole('heading', { name: 'Cost by instance' }).waitFor();
  const inside = { type: 'agent', dimension: 'agent_compute_runtime_gbs', group: 'resource_uuid' };
  expect(viewOf(page)).toEqual({ account: 'acme', period: 'month', ...inside });

  await showView(page, 'accounts=all&group=account&compare=period');
  await page.getByRole('cell', { name: '+$43.02 +134.4%' }).waitFor();
  expect((await tableRows(page)).map((cells) => cells.slice(0, 4))).toEqual([
    ['Globex Corp. (globex)', '$100.00', '57.1%', '$0.00'],
    ['acme', '$75.02', '42.9%', '$32.00'],
  ]);
  expect((await tableTotal(page))[1]).toBe('$175.02');
  expect(await page.getByRole('button', { name: /events behind|alert/i }).count()).toBe(0);
  await page.getByRole('button', { name: 'Copy as' }).click();
  const copied = await page.locator('.copy pre').textContent();
  expect(copied).toContain(`${api.url}/v0/metrics?`);
  // The query for the previous period is copied too.
  expect(copied?.match(/startTime=/g)).toHaveLength(2);
  await page.keyboard.press('Escape');
  const { name, lines } = await exported(page, 'Groups');
  expect(name).toBe('meterline-all-accounts-2025-10-17-to-2025-11-15-account.csv');
  await page.getByRole('button', { name: 'Export CSV' }).click();
  expect(await page.getByText('FOCUS').count()).toBe(0);
  expect(lines[0]).toMatch(/^\uFEFFaccount,startTime,endTime,costUsd,/);
  expect(lines[1]).toMatch(/^globex,.*,100,/);
  await showView(page, 'account=globex');
  await page.getByRole('heading', { level: 1, name: 'Cost and usage: Globex Corp. (globex)' }).waitFor();
});

// Runs last, because its account would appear among all accounts.
it('the comparison finds a cheap group among thousands without reading the others, and the table counts all groups', async () => {
  const { api } = explorer();
  const then = { accountId: 'many', at: '2025-11-07T09:00:00Z' };
  const now = { accountId: 'many', at: '2025-11-14T09:00:00Z' };
  const boxes = Array.from({ length: 5_001 }, (_, index) =>
    event({ ...then, resourceName: `box-${index}`, cost: index === 0 ? '1' : '2' }),
  );
  const after = [
    event({ ...now, resourceName: 'box-0', cost: '3' }),
    event({ ...now, resourceName: 'fresh', cost: '2' }),
  ];
  await api.seed([...boxes, ...after]);
  const cursors: string[] = [];
  const prepare = async (shown: Page) =>
    shown.on('request', (request) => cursors.push(new URL(request.url()).searchParams.get('cursor') ?? ''));
  const view = 'account=many&period=7d&group=resource_name&compare=period';
  const { page } = await explorer().visit({ key: await api.key('many'), view, prepare });
  await page.getByRole('cell', { name: '+$2.00 +200.0%' }).waitFor();
  expect((await tableRows(page)).map((cells) => [cells[1], ...cells.slice(-2)])).toEqual([
    ['$3.00', '$1.00', '+$2.00 +200.0%'],
    ['$2.00', '$0.00', '+$2.00 new'],
  ]);
  // The service stores a result when a second page is requested.
  expect(cursors.filter((cursor) => cursor !== '')).toEqual([]);
  // The export reads every page: box-0 was the cheapest group. Groups without current usage have a line too, so that the previous costs add up.
  const { lines } = await exported(page, 'Groups');
  const previousCosts = lines.slice(1).map((line) => line.split(',').at(-3));
  expect(previousCosts).toEqual(['1', '0', ...Array(5_000).fill('2')]);

  await showView(page, 'account=many&group=resource_name&sort=name&page=41');
  await page.getByText('Page 41 of 201 · 1,001–1,025 of 5,002 groups').waitFor();
});

it('an operator starts with all accounts, has the role operator and no alerts, and finds an account by typing', async () => {
  const { api } = explorer();
  for (let index = 1; index < 9; index += 1) await api.key(`tenant-${index}`, 'member');
  const { page } = await explorer().visit({ guest: {}, key: await api.key(undefined, 'operator') });
  await page.getByRole('heading', { name: 'Cost by account' }).waitFor();
  expect(viewOf(page)).toEqual({ accounts: 'all', group: 'account' });
  await page.getByRole('combobox', { name: 'Account', exact: true }).click();
  await page.getByRole('option', { name: 'acme operator' }).waitFor();
  await page.keyboard.type('acm');
  await page.getByRole('option', { name: 'tenant-1' }).waitFor({ state: 'hidden' });
  await page.keyboard.press('Enter');
  await columnAppears(page, 'Resource type');
  expect(viewOf(page)).toEqual({ account: 'acme' });
  await tableRows(page);
  expect(await page.getByRole('button', { name: /alert/i }).count()).toBe(0);
});
