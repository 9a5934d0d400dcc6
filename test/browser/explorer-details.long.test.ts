/** Tests the breakdown, chart, table, usage and periods of the cost explorer in a browser. */
import { expect, it } from '@jest/globals';
import type { Page, Route } from 'playwright-core';
import { NOW } from '../harness/api.js';
import {
  barAt,
  choose,
  chooseOption,
  columnAppears,
  figure,
  NOV_14,
  setFilter,
  showView,
  tableRows,
  tableTotal,
  useExplorer,
  viewOf,
} from './browser.js';

const explorer = useExplorer();
const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).click();

it('a view can be grouped by up to three dimensions, and the back button returns', async () => {
  const page = await explorer().open();
  await choose(page, 'Group by', 'Workspace');
  await choose(page, 'Then by', 'Billing dimension');
  await columnAppears(page, 'Billing dimension');
  expect(viewOf(page)).toEqual({ account: 'acme', group: 'workspace,billing_dimension' });
  expect((await tableRows(page))[0]?.slice(0, 2)).toEqual(['mainAgent computeAgent', 'Agent compute']);
  await choose(page, 'And by', 'Resource type');
  await page.getByRole('heading', { name: 'Cost by workspace, billing dimension and resource type' }).waitFor();
  expect(viewOf(page)).toEqual({ account: 'acme', group: 'workspace,billing_dimension,resource_type' });
  expect((await tableRows(page))[0]?.slice(0, 4)).toEqual([
    'mainAgent compute · Agent',
    'Agent compute',
    'Agent',
    '$40.00',
  ]);
  await choose(page, 'Then by', 'None');
  await page.getByRole('heading', { name: 'Cost by workspace and resource type' }).waitFor();
  await page.goBack();
  await page.goBack();
  await page.goBack();
  await page.goBack();
  await columnAppears(page, 'Resource type');
  expect(viewOf(page)).toEqual({ account: 'acme' });
  await page.goForward();
  await columnAppears(page, 'Workspace');
});

// 14 November is the 29th of thirty days, and the agent is at the bottom of its bar.
it.each([
  ['opens the next finer breakdown of its day', '', { group: 'resource_name', type: 'agent', ...NOV_14 }],
  ['without groups opens its day', 'group=none', { group: 'none', ...NOV_14 }],
])('a click on a bar %s', async (_what, view, expected) => {
  const page = await explorer().open(view);
  await tableRows(page);
  await page.mouse.click(...(await barAt(page, 28, 30, 20)));
  await page.getByRole('button', { name: 'Period 14 Nov 2025' }).waitFor();
  expect(viewOf(page)).toEqual({ account: 'acme', ...expected });
});

it('dragging over bars zooms into their period', async () => {
  const page = await explorer().open();
  await tableRows(page);
  await page.mouse.move(...(await barAt(page, 15, 30, 100)));
  await page.mouse.down();
  await page.mouse.move(...(await barAt(page, 28, 30, 100)), { steps: 3 });
  await page.mouse.up();
  await page.getByRole('button', { name: 'Period 1 Nov – 14 Nov 2025' }).waitFor();
  expect(viewOf(page)).toMatchObject({ from: '2025-11-01T00:00:00Z', to: NOV_14.to });
});

it.each<[string, number, (box: { x: number; y: number; width: number; height: number }) => [number, number][], object]>(
  [
    [
      'ends at the right edge when the pointer leaves there',
      20,
      ({ x, y, width }) => [[x + width + 200, y + 50]],
      { from: '2025-11-06T00:00:00Z', to: '2025-11-16T00:00:00Z' },
    ],
    [
      'ends at the left edge when the pointer leaves there',
      2,
      ({ x, y }) => [[x - 100, y + 50]],
      { from: '2025-10-17T00:00:00Z', to: '2025-10-20T00:00:00Z' },
    ],
    [
      'continues when the pointer leaves at the top and returns',
      15,
      ({ x, y, width }) => [
        [x + width / 2, y - 40],
        [x + width - 20, y + 50],
      ],
      { from: '2025-11-01T00:00:00Z', to: '2025-11-16T00:00:00Z' },
    ],
  ],
)('a dragged range %s', async (_what, first, path, expected) => {
  const page = await explorer().open();
  await tableRows(page);
  const box = await page.getByTestId('chart').boundingBox();
  if (!box) throw new Error('there is no chart');
  await page.mouse.move(...(await barAt(page, first, 30, 100)));
  await page.mouse.down();
  for (const [x, y] of path(box)) await page.mouse.move(x, y, { steps: 3 });
  await page.mouse.up();
  await page.getByRole('button', { name: /^Period \d/ }).waitFor();
  expect(viewOf(page)).toMatchObject(expected);
});

it('a click on a name in the legend hides the group', async () => {
  const page = await explorer().open();
  await tableRows(page);
  const agent = page.getByRole('list', { name: 'Legend' }).getByRole('button', { name: /^Agent/ });
  await agent.click();
  expect(await agent.getAttribute('aria-pressed')).toBe('false');
  await page.mouse.move(...(await barAt(page, 28, 30, 20)));
  const names = page.locator('.tooltip-name');
  await names.first().waitFor();
  expect(await names.allTextContents()).toEqual(['Job', 'Volume', 'Custom domain']);
  expect(await page.locator('.tooltip-total').textContent()).toMatch(/^Total \(including hidden groups\)\$/);
});

it('another breakdown shows the comparison line again after a group was hidden', async () => {
  const page = await explorer().open('compare=period&group=workspace');
  const legend = page.getByRole('list', { name: 'Legend' });
  const line = legend.getByText(/earlier$/);
  await line.waitFor();
  await legend.getByRole('button').first().click();
  await line.waitFor({ state: 'detached' });
  await choose(page, 'Group by', 'Billing dimension');
  await columnAppears(page, 'Billing dimension');
  await line.waitFor();
});

it('a choice while another breakdown is pending changes the pending view', async () => {
  const page = await explorer().open();
  await tableRows(page);
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/groupBy=workspace/, (route) => released.then(() => route.continue()));
  const requested: string[] = [];
  page.on('request', (request) => void requested.push(request.url()));
  await choose(page, 'Group by', 'Workspace');
  await page.getByRole('button', { name: 'Table', exact: true }).click();
  await setFilter(page, 'Resource type', { values: ['Agent'] });
  await page.getByText('Resource type: Agent').waitFor();
  // The month and its forecast belong to the view on the screen, which is the previous one.
  expect(requested.filter((url) => url.includes('resourceType=agent') && !url.includes('groupBy'))).toEqual([]);
  release();
  await columnAppears(page, 'Workspace');
  expect(viewOf(page)).toMatchObject({ group: 'workspace', show: 'table', type: 'agent' });
});

it('future bars cannot be opened', async () => {
  const page = await explorer().open('from=2025-11-01T00:00:00Z&to=2025-12-01T00:00:00Z');
  await tableRows(page);
  const view = viewOf(page);
  await page.getByRole('slider').focus();
  for (const key of ['End', 'ArrowRight', 'ArrowRight', 'Enter', 'Shift+ArrowRight', 'Enter'])
    await page.keyboard.press(key);
  expect(viewOf(page)).toEqual(view);
});

it('the chart can be used with the keyboard, and announces the bar', async () => {
  const page = await explorer().open();
  await tableRows(page);
  const chart = page.getByRole('slider');
  await chart.focus();
  for (const key of ['End', 'ArrowLeft', 'ArrowDown']) await page.keyboard.press(key);
  expect(await chart.getAttribute('aria-valuetext')).toBe('Fri, 14 Nov 2025: Agent $40.00 of $66.50');
  await page.keyboard.press('Enter');
  await columnAppears(page, 'Resource');
  expect(viewOf(page)).toMatchObject({ type: 'agent', ...NOV_14 });
});

it('the chart that a bar opens has no highlight of the previous chart', async () => {
  const page = await explorer().open();
  await tableRows(page);
  await page.getByRole('slider').focus();
  for (const key of ['End', 'ArrowLeft', 'ArrowUp', 'Enter']) await page.keyboard.press(key);
  await columnAppears(page, 'Resource');
  expect(await page.locator('.chart-bars.dimmed, .tooltip, .chart-band').count()).toBe(0);
  expect(await page.getByRole('slider').getAttribute('aria-valuetext')).toBe('No bar selected');
});

it('the table has pages across all pages of the API', async () => {
  const page = await explorer().open('group=resource_name');
  expect((await tableRows(page)).slice(0, 2).map(([name]) => name)).toEqual([
    'supportmain · Agent',
    'nightlymain · Job',
  ]);
  await page.getByText('Page 1 · 1–25 of more than 100 groups').waitFor();
  for (const next of ['26–50', '51–75', '76–100', '101–125', 'Page 6 of 6 · 126–134 of 134 groups']) {
    await press(page, 'Next');
    await page.getByText(next).waitFor();
  }
  const last = await tableRows(page);
  expect(last).toHaveLength(9);
  expect(last.at(-1)?.slice(0, 2)).toEqual(['box-001main · Sandbox', '$0.001']);
  expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true);
  expect((await tableTotal(page))[1]).toBe('$75.02');
  await page.reload();
  await page.getByText('126–134 of 134 groups').waitFor();
  await showView(page, 'account=acme&group=resource_name&page=999');
  await page.getByText('126–134 of 134 groups').waitFor();
});

it('the table restarts when its pages have expired, and offers a retry when that repeats', async () => {
  const { page } = await explorer().visit({ view: 'account=acme&group=resource_name' });
  await tableRows(page);
  const further = /[?&]cursor=/;
  const json = { code: 400, error: 'cursor_expired', message: 'The cursor has expired.', requestId: 'request-7' };
  const expire = (route: Route) => route.fulfill({ status: 400, json });
  const { clock } = explorer().api;
  try {
    for (const [group, laterMs] of [
      ['resource_name', 0],
      ['resource_name,workspace', 1_000],
    ] as const) {
      // After a second, the first page has another cursor.
      const move = async (route: Route) => {
        await expire(route);
        clock.now = new Date(clock.now.getTime() + laterMs);
      };
      await page.route(further, move, { times: 2 });
      await showView(page, `account=acme&group=${group}&page=6`);
      await page.getByText('126–134 of 134 groups').waitFor();
      await page.unroute(further);
    }
    await page.route(further, expire);
    await showView(page, 'account=acme&group=resource_name,resource_type&page=6');
    await page.getByText('This list has expired').waitFor();
    await page.unroute(further);
    await press(page, 'Try again');
    await page.getByText('126–134 of 134 groups').waitFor();
  } finally {
    clock.now = NOW;
  }
});

it('the table sorts and searches the groups of all pages, and its number of rows can be chosen', async () => {
  const page = await explorer().open('group=resource_name');
  await tableRows(page);
  await press(page, 'Cost (USD)');
  await page.getByRole('columnheader', { name: 'Cost (USD)' }).and(page.locator('[aria-sort=ascending]')).waitFor();
  await page.getByText('1–25 of 134 groups').waitFor();
  expect((await tableRows(page))[0]?.[0]).toBe('box-001main · Sandbox');
  await choose(page, 'Rows per page', '50 rows');
  await page.getByText(/1–50 of /).waitFor();
  await page.getByLabel('Search groups').fill('box-00');
  await page.getByText('1–9 of 9 groups').waitFor();
  expect(viewOf(page)).toMatchObject({ sort: 'cost', rows: '50', search: 'box-00' });
  await page.getByRole('row', { name: '9 groups found $0.04' }).waitFor();
  await page.getByLabel('Search groups').fill('zzz');
  await page.getByText('No groups match “zzz”.').waitFor();
});

it('usage has a unit, or an explanation why it cannot be shown', async () => {
  const page = await explorer().open();
  await press(page, /^Options/);
  await page.getByText('This view mixes GB-seconds, events and hours').waitFor();
  await page.keyboard.press('Escape');
  await setFilter(page, 'Billing dimension', { values: ['Job compute'] });
  await chooseOption(page, 'Measure', 'Usage');
  await page.getByRole('heading', { name: 'Usage in GB-h by resource type' }).waitFor();
  expect(await figure(page, 'Usage').textContent()).toBe('0.14 GB-h');
  expect((await tableRows(page))[0]).toContain('0.14 GB-h');
  expect(await page.getByTitle('500.25 GB-s').count()).toBeGreaterThan(1);
  expect(viewOf(page)).toMatchObject({ measure: 'usage', dimension: 'job_compute_runtime_gbs' });
  await showView(page, 'account=acme&dimension=job_compute_runtime_gbs&measure=usage&exact=1');
  expect((await tableRows(page))[0]).toContain('500.25 GB-s');
});

it('the period can be a preset, a month or a custom range, and unavailable resolutions have a reason', async () => {
  const page = await explorer().open('exact=1');
  await press(page, /^Period/);
  await press(page, /^Last 12 months/);
  await press(page, /^Options/);
  await page.getByText('Hourly: Only available for periods of up to 7 days.').waitFor();
  await page.keyboard.press('Escape');
  await press(page, /^Period/);
  await choose(page, 'Month', 'October 2025');
  await press(page, 'Period October 2025');
  await page.getByLabel('Start date').fill('2025-11-14');
  await page.getByLabel('End date').fill('2025-11-14');
  await press(page, 'Apply');
  await page.getByRole('button', { name: 'Period 14 Nov 2025' }).waitFor();
  expect(viewOf(page)).toMatchObject(NOV_14);
  await page.getByRole('row', { name: 'Total of all groups $66.500002000001' }).waitFor();
});

it('an operator of hundreds of accounts starts with all of them, and finds each by its exact name', async () => {
  const { api } = explorer();
  const ids = Array.from({ length: 210 }, (_, index) => `tenant-${index}`);
  await Promise.all([...ids, 'my-tenant-7'].map((id) => api.key(id, 'member')));
  const { page } = await explorer().visit({ guest: {}, key: await api.key(undefined, 'operator') });
  await page.getByRole('heading', { name: 'Cost by account' }).waitFor();
  await page.getByRole('combobox', { name: 'Account', exact: true }).click();
  // The list also has acme and "All accounts".
  await page.getByText('The list shows the first 200. Search for the other 13.').waitFor();
  await page.keyboard.type('tenant-7');
  await page.getByText(/^The list shows/).waitFor({ state: 'detached' });
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Send your first event' }).waitFor();
  expect(viewOf(page)).toEqual({ account: 'tenant-7' });
});

it('the menu links the API reference and the guides', async () => {
  const page = await explorer().open();
  await press(page, 'Menu');
  const guides = page.getByRole('link', { name: 'Guides' });
  expect(await guides.getAttribute('href')).toBe('https://github.com/meterline/meterline/tree/main/docs/guides');
  await page.getByRole('link', { name: 'API reference' }).click();
  await page.getByRole('heading', { name: /^Meterline/ }).waitFor();
  await page.goBack();
  await tableRows(page);
});

it('an admin saves, opens, replaces and deletes a view, and a member sees the views without workspaces', async () => {
  const { api, key, open, visit } = explorer();
  const views = () => api.dependencies.views.listOf('acme');
  const page = await open('group=workspace&period=7d&page=2');
  await press(page, /^(View|Saved views)/);
  await page.getByLabel('Name').fill('Teams');
  await press(page, /^Save$/);
  await page.getByRole('button', { name: 'View Teams' }).waitFor();
  expect((await views()).map(({ name, query }) => [name, query])).toEqual([['Teams', 'period=7d&group=workspace']]);

  await showView(page, 'account=acme&group=billing_dimension');
  await press(page, /^(View|Saved views)/);
  await page.getByLabel('Name').fill('Costs / day');
  await press(page, /^Save$/);
  await page.getByRole('button', { name: 'View Costs / day' }).waitFor();
  await page.getByRole('button', { name: 'Teams', exact: true }).click();
  await page.getByRole('heading', { name: 'Cost by workspace' }).waitFor();
  expect(viewOf(page)).toEqual({ account: 'acme', group: 'workspace', period: '7d' });

  const member = await visit({ key: await api.key('acme', 'member', 'views'), view: 'account=acme' });
  await press(member.page, 'Saved views');
  await member.page.getByRole('button', { name: 'Costs / day' }).waitFor();
  expect(await member.page.getByRole('button', { name: /Teams|Delete|^Save$/ }).count()).toBe(0);
  expect(member.offences).toEqual([]);

  const other = await visit({ key, view: 'account=acme&group=none' });
  await press(other.page, 'Saved views');
  await other.page.getByLabel('Name').fill('Teams');
  await press(other.page, 'Replace');
  await other.page.getByRole('button', { name: 'View Teams' }).waitFor();
  for (const name of ['Teams', 'Costs / day']) {
    await press(other.page, `Delete ${name}`);
    await press(other.page, `Delete ${name} permanently`);
    await other.page.getByRole('button', { name: `Delete ${name} permanently` }).waitFor({ state: 'detached' });
  }
  expect(await views()).toEqual([]);
});
