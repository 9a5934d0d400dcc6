/** Tests the events behind a row, and the FOCUS export, in a browser. */
import { readFile } from 'node:fs/promises';
import { beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import type { Page } from 'playwright-core';
import { runCommand } from '../cli/run-command.js';
import { event } from '../harness/events.js';
import { execute } from '../harness/stack.js';
import {
  accessibilityProblems,
  backgroundBecomes,
  choose,
  DARK,
  LIGHT,
  PHONE,
  rightOf,
  tableRows,
  useExplorer,
} from './browser.js';

const explorer = useExplorer();

beforeAll(async () => {
  const { api } = explorer();
  const { warehouse } = api.dependencies;
  await registerPriceBook(oneServer(warehouse), DEFAULT_PRICE_BOOK);
  // Merges would remove what the history shows.
  await execute(warehouse, 'SYSTEM STOP MERGES usage_events');
  const corrected = {
    accountId: 'fixes',
    eventId: '018f0000-0000-7000-8000-000000000001',
    at: '2025-11-14T09:00:00.25Z',
  };
  await api.seed([event({ ...corrected, usage: '2000', cost: '0.023' })]);
  await api.seed([event({ ...corrected, usage: '1000', cost: '0.0115', revision: 1 })]);
});

const panel = (page: Page) => page.getByRole('dialog', { name: /^Events behind/ });
const cells = (page: Page) =>
  panel(page)
    .locator('tbody tr')
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));

it('the amount of a row opens the events behind it, which add up to the amount', async () => {
  const page = await explorer().open();
  await tableRows(page);
  const button = page.getByRole('button', { name: '$40.00: events behind Agent' });
  await button.press('Enter');
  await panel(page).getByText('2 events: $40.000002 in total, which matches the table.').waitFor();
  await panel(page).getByText('17 Oct – 15 Nov 2025 12:00 · Resource type: Agent').waitFor();
  expect((await cells(page)).map(([time, resource, , , cost]) => [time?.slice(0, 19), resource, cost])).toEqual([
    ['2025-11-14 09:00:00', 'supportmain · Agent compute · no instance ID', '$40.00'],
    ['2025-11-14 09:00:00', 'supportmain · Agent async requests · no instance ID', '$0.000002'],
  ]);
  const row = panel(page).locator('tbody tr').first();
  await row.hover();
  const colors = await row
    .locator('th, td')
    .evaluateAll((all) => all.map((each) => getComputedStyle(each).backgroundColor));
  expect(new Set(colors).size).toBe(1);
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    await backgroundBecomes(page, colorScheme === 'dark' ? DARK : LIGHT);
    expect(await accessibilityProblems(page)).toEqual([]);
  }
  await page.keyboard.press('Escape');
  await panel(page).waitFor({ state: 'detached' });
  expect(await button.evaluate((element) => element === document.activeElement)).toBe(true);
});

it('the events behind a row have pages', async () => {
  const page = await explorer().open('group=none');
  await tableRows(page);
  await page.getByRole('button', { name: /: events behind / }).click();
  await panel(page)
    .getByText(/^The first 100 events: \$\d+\.\d+ of \$75\.015002000001\.$/)
    .waitFor();
  await panel(page).getByRole('button', { name: 'Load more' }).click();
  await panel(page).getByText('135 events: $75.015002000001 in total, which matches the table.').waitFor();
  expect(await panel(page).getByRole('button', { name: 'Load more' }).count()).toBe(0);
  await panel(page).getByRole('button', { name: 'Close' }).click();
  await panel(page).waitFor({ state: 'detached' });
});

it('the events behind a row can be ordered by cost or time, and exported as the file of the command', async () => {
  const { api, key } = explorer();
  const page = await explorer().open('group=none');
  await tableRows(page);
  await page.getByRole('button', { name: /: events behind / }).click();
  const firstCost = async (order: string) => {
    await choose(page, 'Order', order);
    await panel(page)
      .getByText(/^The first 100 events/)
      .waitFor();
    return (await cells(page))[0]?.at(-1);
  };
  expect(await firstCost('Highest cost first')).toBe('$40.00');
  await firstCost('Newest first');
  expect((await cells(page))[0]?.[0]).toMatch(/^2025-11-14 09:00:00/);
  expect(await firstCost('Lowest cost first')).toBe('$0.000002');
  expect(await accessibilityProblems(page)).toEqual([]);
  const button = panel(page).getByRole('button', { name: 'Export CSV' });
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
  expect(download.suggestedFilename()).toBe('meterline-acme-2025-10-17-to-2025-11-15-events.csv');
  const text = await readFile(await download.path(), 'utf8');
  const window = ['--from', '2025-10-17T00:00:00Z', '--to', '2025-11-15T12:00:00Z'];
  const args = ['explain', ...window, '--order-by', 'cost', '--all', '--csv=excel'];
  const command = await runCommand(args, { env: { METERLINE_API_URL: api.url, METERLINE_API_KEY: key } });
  expect(text.trimEnd().split('\r\n')).toHaveLength(1 + 135);
  expect(text).toBe(command.stdout);
  await page.keyboard.press('Escape');
  await panel(page).waitFor({ state: 'detached' });
});

it('the events behind a row show corrections, prices and price books, and fit a narrow screen', async () => {
  const key = await explorer().api.key('fixes');
  const { page, offences } = await explorer().visit({ key, view: 'account=fixes&group=resource_name' });
  await tableRows(page);
  await page.getByRole('button', { name: /events behind box$/ }).click();
  await panel(page).getByText('1 event: $0.0115 in total, which matches the table.').waitFor();
  const resource = 'boxmain · Sandbox compute · u-1';
  const price = `$0.0000115 per GB-sprice book ${DEFAULT_PRICE_BOOK.version}, since 1970-01-01`;
  expect(await cells(page)).toEqual([
    ['2025-11-14 09:00:00.25018f0000-0000-7000-8000-000000000001', resource, '1,000 GB-s', price, '$0.0115'],
    ['was revision 0', resource, '2,000 GB-s', price, '$0.023'],
  ]);
  await page.setViewportSize(PHONE);
  const row = panel(page).locator('tbody tr').first();
  await row.hover();
  const time = await row.locator('th').evaluate((cell) => {
    const range = document.createRange();
    range.selectNode(cell.firstChild ?? cell);
    const { right, bottom } = range.getBoundingClientRect();
    return { right, isVisible: document.elementFromPoint(right - 2, bottom - 4) === cell };
  });
  const cost = await row.locator('td').last().boundingBox();
  expect(time.isVisible).toBe(true);
  expect(time.right).toBeLessThanOrEqual(cost?.x ?? 0);
  for (const name of ['$0.0115', '1,000 GB-s', /^\$0\.0000115 per GB-s/]) {
    expect(await rightOf(panel(page).getByRole('cell', { name }).first())).toBeLessThanOrEqual(PHONE.width);
  }
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Export CSV' }).click();
  const menu = page.getByRole('dialog', { name: 'Export CSV' });
  await menu.getByRole('combobox', { name: 'Month' }).waitFor();
  expect((await menu.boundingBox())?.x).toBeGreaterThanOrEqual(0);
  expect(await rightOf(menu)).toBeLessThanOrEqual(PHONE.width);
  expect(offences).toEqual([]);
});

it('a member sees that only admins can open the events behind a row', async () => {
  const key = await explorer().api.key('acme', 'member');
  const { page } = await explorer().visit({ key, view: 'account=acme' });
  await tableRows(page);
  await page.getByText('Account admins can view the events behind each amount.').waitFor();
  expect(await page.getByRole('button', { name: /events behind/ }).count()).toBe(0);
});

it('the FOCUS export equals the file of the command, byte for byte', async () => {
  const { api, key } = explorer();
  const page = await explorer().open('type=agent');
  await tableRows(page);
  await page.getByRole('button', { name: 'Export CSV' }).click();
  const menu = page.getByRole('dialog', { name: 'Export CSV' });
  await choose(page, 'Month', 'November 2025');
  expect(await accessibilityProblems(page)).toEqual([]);
  await menu.getByLabel('Provider name').fill('Acme Cloud');
  const button = menu.getByRole('button', { name: 'Export FOCUS' });
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
  expect(download.suggestedFilename()).toBe('meterline-acme-2025-11-focus.csv');
  const bytes = await readFile(await download.path(), 'utf8');
  const args = ['export', 'focus', '--month', '2025-11', '--provider', 'Acme Cloud'];
  const command = await runCommand(args, { env: { METERLINE_API_URL: api.url, METERLINE_API_KEY: key } });
  expect(bytes.split('\r\n').length).toBe(1 + 130 + 5 + 1);
  expect(bytes).toBe(command.stdout);
});
