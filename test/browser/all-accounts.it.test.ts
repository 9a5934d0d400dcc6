/** All accounts of a caller in one view of the page. */
import { readFile } from 'node:fs/promises';
import { beforeAll, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { event } from '../harness/events.js';
import { choose, chooseOption, setFilter, tableRows, tableTotal, viewOf, visit } from './browser.js';
import { useExplorer } from './explorer-page.js';

const explorer = useExplorer();

/** Of an operator, who reads every account. */
let key: string;

beforeAll(async () => {
  const { api } = explorer();
  await api.key('globex');
  const desk = { resourceType: 'agent', resourceName: 'desk', billingDimension: 'agent_compute_runtime_gbs' } as const;
  await api.seed([event({ ...desk, accountId: 'globex', cost: '100', at: '2025-11-14T09:00:00Z' })]);
  key = await api.key('platform', 'operator');
});

async function open(view: string): Promise<Page> {
  const { api, context } = explorer();
  return (await visit(context, api.url, { key, view })).page;
}

it('all accounts are one choice, by account; a row leads into the account with the period and the filters', async () => {
  const page = await open('account=acme&period=month');
  await tableRows(page);
  await choose(page, 'Account', 'All accounts');
  await page.getByRole('heading', { name: 'Cost by account' }).waitFor();
  expect(viewOf(page)).toEqual({ accounts: 'all', period: 'month', group: 'account' });
  expect(await tableRows(page)).toEqual([
    ['globex', '$100.00', '57.1%'],
    ['acme', '$75.02', '42.9%'],
  ]);
  await setFilter(page, 'Type', { values: ['Agent'] });
  await choose(page, 'and by', 'Billing dimension');
  await page.getByRole('columnheader', { name: 'Account' }).waitFor();
  expect((await tableRows(page)).map((cells) => cells.slice(0, 3))).toEqual([
    ['globexAgent computeAgent', 'Agent compute', '$100.00'],
    ['acmeAgent computeAgent', 'Agent compute', '$40.00'],
    ['acmeAgent async requestsAgent', 'Agent async requests', '$0.000002'],
  ]);
  await page.getByRole('link', { name: 'acme' }).first().click();
  await page.getByRole('heading', { name: 'Cost by instance' }).waitFor();
  const inside = { type: 'agent', dimension: 'agent_compute_runtime_gbs', group: 'resource_uuid' };
  expect(viewOf(page)).toEqual({ account: 'acme', period: 'month', ...inside });
  await page.goBack();
  await page.getByRole('heading', { name: 'Cost by account and billing dimension' }).waitFor();
});

it('all accounts are compared and exported, without what is about one account alone', async () => {
  const page = await open('accounts=all&group=account');
  await chooseOption(page, 'Compare with', 'The period before');
  await page.getByRole('cell', { name: '+$43.02 +134.4%' }).waitFor();
  expect((await tableRows(page)).map((cells) => cells.slice(0, 4))).toEqual([
    ['globex', '$100.00', '57.1%', '$0.00'],
    ['acme', '$75.02', '42.9%', '$32.00'],
  ]);
  expect((await tableTotal(page))[1]).toBe('$175.02');
  expect(await page.getByRole('button', { name: /events behind|alert/i }).count()).toBe(0);
  await page.getByRole('button', { name: 'Copy as' }).click();
  expect(await page.locator('.copy pre').textContent()).toContain(`${explorer().api.url}/v0/metrics?`);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Export CSV' }).click();
  expect(await page.getByText('FOCUS').count()).toBe(0);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'The table' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe('meterline-all-accounts-2025-10-17-to-2025-11-15-account.csv');
  const lines = (await readFile(await download.path(), 'utf8')).split('\r\n');
  expect(lines[0]).toMatch(/^\uFEFFaccount,startTime,endTime,costUsd,/);
  expect(lines[1]).toMatch(/^globex,.*,100,/);
});
