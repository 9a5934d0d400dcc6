/** The cost explorer in a browser. */
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { TestApi } from '../contract/fixture.js';
import { ACME, BOXES, FORMULA } from './acme.js';
import {
  choose,
  closePages,
  launchBrowser,
  newContext,
  showView,
  startPage,
  tableRows,
  tableTotal,
  viewOf,
  visit,
} from './browser.js';

let api: TestApi;
let browser: Browser;
let context: BrowserContext;
let key: string;
/** Signed in, and used by all tests that only need a view: see `open`. */
let explorer: Page;

beforeAll(async () => {
  [api, browser] = await Promise.all([startPage(), launchBrowser()]);
  await api.seed(ACME);
  key = await api.key('acme');
  context = await newContext(browser);
  explorer = (await visit(context, api.url, { key, view: 'account=acme' })).page;
});
afterEach(() => closePages(context, explorer));
afterAll(async () => {
  await browser?.close();
  await api?.stop();
});

async function open(view = ''): Promise<Page> {
  await showView(explorer, view === '' ? 'account=acme' : `account=acme&${view}`);
  return explorer;
}
const figure = (page: Page, title: string) => page.locator('.figure', { hasText: title }).locator('.figure-value');

/** The middle of a bar's column, that much above the axis. */
async function clickBar(page: Page, bucket: number, buckets: number, above: number): Promise<void> {
  const box = await page.getByTestId('chart').boundingBox();
  if (!box) throw new Error('there is no chart');
  const plot = { left: 64, right: 8, bottom: 28 };
  const x = plot.left + ((bucket + 0.5) * (box.width - plot.left - plot.right)) / buckets;
  await page.mouse.click(box.x + x, box.y + box.height - plot.bottom - above);
}

describe('signing in', () => {
  it('shows the account, keeps the key for the tab, and never in the URL', async () => {
    const { page } = await visit(context, api.url);
    await page.getByLabel('API key or access token').fill(`Bearer ${key}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(tableRows(page)).resolves.toHaveLength(5);
    expect(page.url()).toBe(`${api.url}/?account=acme`);
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(key);
    await page.reload();
    await expect(tableRows(page)).resolves.toHaveLength(5);
  });

  it('out forgets it', async () => {
    const { page } = await visit(context, api.url, { key, view: 'account=acme' });
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key or access token').waitFor();
    await page.reload();
    await page.getByLabel('API key or access token').waitFor();
    expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain('mlk_');
  });
});

describe('the figures', () => {
  it('are exact in the table, with shares, and a total of all groups', async () => {
    const page = await open();
    expect(await tableRows(page)).toEqual([
      ['Agent', '$40.000002', '53.3%'],
      ['Job', '$20.000000000001', '26.7%'],
      ['Sandbox', '$8.515', '11.4%'],
      ['Volume', '$5.00', '6.7%'],
      ['Custom domain', '$1.50', '2.0%'],
    ]);
    expect(await tableTotal(page)).toEqual(['Total of all groups', '$75.015002000001', '']);
    expect(await figure(page, 'Cost').textContent()).toBe('$75.02');
    expect(await figure(page, 'Month to date').textContent()).toBe('$75.02');
    expect(await figure(page, 'Highest day').textContent()).toBe('$66.50');
  });

  it('of the chart are there as a table, where Other is the rest to the last digit', async () => {
    const page = await open('group=resource_name&show=table');
    const chart = page.getByRole('region', { name: 'Over time' });
    await chart.locator('tfoot tr').waitFor();
    const texts = (selector: string) => chart.locator(selector).allTextContents();
    expect((await texts('thead th')).slice(0, 4)).toEqual(['Time (UTC)', 'Total', 'support', 'nightly']);
    expect((await texts('thead th')).at(-1)).toBe('Other');
    // 8.515 for all boxes, less the six that are shown: 0.765.
    expect((await texts('tfoot tr > *')).at(-1)).toBe('$7.75');
    expect((await texts('tfoot tr > *'))[1]).toBe('$75.015002000001');
    expect(await texts('tbody tr:last-child th')).toEqual(['Sat, 15 Nov 2025']);
  });

  it('that are tiny are not rounded to nothing', async () => {
    const page = await open('group=billing_dimension&type=agent');
    expect(await tableRows(page)).toEqual(
      [
        ['Agent compute', '$40.00', expect.anything(), '1,000 GB-s'],
        ['Agent async requests', '$0.000002', '<0.1%', '7 events'],
      ].map(([label, ...cells]) => [`${label}Agent`, ...cells]),
    );
  });
});

describe('the breakdown', () => {
  it('is by any dimension or pair, and goes back with the browser', async () => {
    const page = await open();
    await choose(page, /^Group by/, 'Workspace');
    await choose(page, /^and/, 'Billing dimension');
    await page.getByRole('columnheader', { name: 'Billing dimension' }).waitFor();
    expect(viewOf(page)).toEqual({ account: 'acme', group: 'workspace,billing_dimension' });
    expect((await tableRows(page))[0]?.slice(0, 2)).toEqual(['mainAgent computeAgent', 'Agent compute']);
    await page.goBack();
    await page.goBack();
    await page.getByRole('columnheader', { name: 'Resource type' }).waitFor();
    expect(viewOf(page)).toEqual({ account: 'acme' });
    await page.goForward();
    await page.getByRole('columnheader', { name: 'Workspace' }).waitFor();
  });

  it('of a row goes one step finer', async () => {
    const page = await open();
    await page.getByRole('link', { name: 'Agent', exact: true }).click();
    await page.getByRole('link', { name: 'support' }).click();
    await page.getByRole('columnheader', { name: 'Billing dimension' }).waitFor();
    expect(viewOf(page)).toEqual({ account: 'acme', group: 'billing_dimension', type: 'agent', name: 'support' });
  });

  it('of a bar goes one step finer', async () => {
    const page = await open();
    await tableRows(page);
    // 14 November is the 29th of thirty days, and the agent the lowest part of its bar.
    await clickBar(page, 28, 30, 20);
    await page.getByRole('columnheader', { name: 'Resource', exact: true }).waitFor();
    expect(viewOf(page)).toEqual({ account: 'acme', group: 'resource_name', type: 'agent' });
  });

  it('without groups, a bar leads into its day', async () => {
    const page = await open('group=none');
    await tableRows(page);
    await clickBar(page, 28, 30, 20);
    await page.getByRole('button', { name: 'Resolution Hourly' }).waitFor();
    expect(viewOf(page)).toMatchObject({ from: '2025-11-14T00:00:00Z', to: '2025-11-15T00:00:00Z' });
  });

  it('can be walked by keyboard, and is announced', async () => {
    const page = await open();
    await tableRows(page);
    const chart = page.getByRole('slider');
    await chart.focus();
    for (const key of ['End', 'ArrowLeft', 'ArrowDown']) await page.keyboard.press(key);
    expect(await chart.getAttribute('aria-valuetext')).toBe('Fri, 14 Nov 2025: Agent $40.00 of $66.50');
    await page.keyboard.press('Enter');
    await page.getByRole('columnheader', { name: 'Resource', exact: true }).waitFor();
    expect(viewOf(page)).toMatchObject({ type: 'agent' });
  });
});

describe('a filter', () => {
  it('is found by typing, and its values have their costs', async () => {
    const page = await open('group=resource_name');
    await page.getByRole('button', { name: 'Resource All' }).click();
    await page.getByRole('option', { name: 'support $40.00' }).waitFor();
    await page.keyboard.type('night');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Clear filters' }).waitFor();
    expect(viewOf(page)).toMatchObject({ name: 'nightly' });
    await page.getByRole('row', { name: 'Total of all groups $20.000000000001' }).waitFor();
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await page.getByRole('row', { name: 'Total of all groups $75.015002000001' }).waitFor();
  });

  it('by workspace, type and dimension leaves what fits', async () => {
    const page = await open('group=none');
    await choose(page, 'Workspace All', 'staging');
    await choose(page, 'Type All', 'Sandbox');
    await page.getByRole('row', { name: 'Total of all groups $4.29' }).waitFor();
    await page.getByRole('button', { name: 'Billing dimension All' }).click();
    const job = page.getByRole('option', { name: 'Job compute' });
    expect(await job.getAttribute('aria-disabled')).toBe('true');
    expect(await job.textContent()).toContain('Not of Sandbox.');
  });
});

describe('the table', () => {
  it('has pages, over all pages of the API', async () => {
    const page = await open('group=resource_name');
    expect((await tableRows(page)).slice(0, 2).map(([name]) => name)).toEqual([
      'supportmain · Agent',
      'nightlymain · Job',
    ]);
    await page.getByText('1–25 of more than 100 groups').waitFor();
    for (const next of ['26–50', '51–75', '76–100', '101–125', '126–134']) {
      await page.getByRole('button', { name: 'Next' }).click();
      await page.getByText(next).waitFor();
    }
    const last = await tableRows(page);
    expect(last).toHaveLength(9);
    expect(last.at(-1)?.slice(0, 2)).toEqual(['box-001main · Sandbox', '$0.001']);
    expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true);
    expect((await tableTotal(page))[1]).toBe('$75.015002000001');
    await page.reload();
    await page.getByText('126–134 of 134 groups').waitFor();
  });

  it('sorts all of them, whatever page they came on', async () => {
    const page = await open('group=resource_name');
    await tableRows(page);
    await page.getByRole('button', { name: 'Cost (USD)' }).click();
    await page.getByRole('columnheader', { name: 'Cost (USD)' }).and(page.locator('[aria-sort=ascending]')).waitFor();
    await page.getByText('1–25 of 134 groups').waitFor();
    expect((await tableRows(page))[0]?.[0]).toBe('box-001main · Sandbox');
    expect(viewOf(page)).toMatchObject({ sort: 'cost' });
  });
});

describe('the comparison with the period before', () => {
  it('is in money and in percent, in sum and for each row', async () => {
    const page = await open();
    await page.getByLabel('Compare with previous period').check();
    await page.getByRole('columnheader', { name: 'Change' }).waitFor();
    await expect(tableRows(page)).resolves.toContainEqual(['Agent', '$40.000002', '53.3%', '$32.00', '+$8.00 +25.0%']);
    await expect(tableRows(page)).resolves.toContainEqual(['Volume', '$5.00', '6.7%', '$0.00', '+$5.00 new']);
    expect((await tableTotal(page)).slice(3)).toEqual(['$32.00', '+$43.02 +134.4%']);
    expect(await figure(page, 'Change').textContent()).toBe('+$43.02 +134.4%');
    await page.getByText('$32.00 in 17 Sept – 16 Oct 12:00').waitFor();
    expect(viewOf(page)).toEqual({ account: 'acme', compare: 'previous' });
  });
});

describe('usage', () => {
  it('is shown in its unit where there is one, and explained where not', async () => {
    const page = await open();
    await tableRows(page);
    const usage = page.getByRole('group', { name: 'Measure' }).getByRole('button', { name: 'Usage' });
    await usage.hover();
    await page.getByText('Usage adds up only in one unit').waitFor();
    await choose(page, 'Billing dimension All', 'Job compute');
    await usage.click();
    await page.getByRole('heading', { name: 'Usage in GB-s by resource type' }).waitFor();
    expect(await figure(page, 'Usage').textContent()).toBe('500.2 GB-s');
    expect((await tableRows(page))[0]).toContain('500.25 GB-s');
    expect(viewOf(page)).toMatchObject({ measure: 'usage', dimension: 'job_compute_runtime_gbs' });
  });
});

describe('the period', () => {
  it('is a preset or a custom range, and explains which resolutions it is too long for', async () => {
    const page = await open();
    await page.getByRole('button', { name: /^Period/ }).click();
    await page.getByRole('button', { name: /^Last 12 months/ }).click();
    await page.getByRole('button', { name: 'Resolution Monthly' }).click();
    const hourly = page.getByRole('option', { name: 'Hourly' });
    expect(await hourly.getAttribute('aria-disabled')).toBe('true');
    expect(await hourly.textContent()).toContain('For up to 7 days; choose a shorter period.');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /^Period/ }).click();
    await page.getByLabel('First day').fill('2025-11-14');
    await page.getByLabel('Last day, inclusive').fill('2025-11-14');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('button', { name: 'Resolution Hourly' }).waitFor();
    expect(viewOf(page)).toMatchObject({ from: '2025-11-14T00:00:00Z', to: '2025-11-15T00:00:00Z' });
    await page.getByRole('row', { name: 'Total of all groups $66.500002000001' }).waitFor();
  });
});

describe('the CSV', () => {
  it('has all groups of all pages, exact, and runs no formula', async () => {
    const page = await open('group=resource_name');
    await tableRows(page);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('meterline-acme-2025-10-17-to-2025-11-16-resource_name.csv');
    const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\r\n');
    expect(lines[0]).toBe('\uFEFFworkspace,resourceType,resourceName,costUsd,sharePercent');
    expect(lines).toHaveLength(1 + BOXES + 4);
    expect(lines).toContain('main,job,nightly,20.000000000001,26.661334');
    expect(lines).toContain(`main,volume,"'${FORMULA.replaceAll('"', '""')}",5,6.665333`);
    expect(lines.at(-1)).toMatch(/^main,sandbox,box-001,0\.001,/);
  });
});
