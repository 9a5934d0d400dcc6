/** The API's reference as a reader uses it. That its form sends a request is shown in test/browser/explorer. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { graveFindings } from './accessibility.js';
import { background, closePages, DARK, LIGHT, newContext, tryForm, visit } from './browser.js';
import { useExplorer } from './explorer-page.js';

const PHONE = { width: 390, height: 844 };

const explorer = useExplorer();
/** Not that of the signed-in explorer, which would give its key to the reference. */
let context: BrowserContext;
let url: string;
let key: string;

beforeAll(async () => {
  const { api, browser } = explorer();
  url = api.url;
  key = await api.key('initech');
  context = await newContext(browser);
});
afterEach(() => closePages(context));
afterAll(() => context?.close());

const open = (options: { key?: string; prepare?: (page: Page) => Promise<unknown> } = {}) =>
  visit(context, url, { path: 'docs', ...options });
const sideways = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

describe('the form of an operation', () => {
  it('has the key that the cost explorer of the tab uses, its account, and the last seven days', async () => {
    const { page } = await open({ key });
    const form = await tryForm(page, 'getAccountMetrics');
    await page.waitForFunction(
      () => document.querySelector<HTMLInputElement>('#try-getAccountMetrics-accountId')?.value === 'initech',
    );
    expect(await form.getByLabel('API key or access token').inputValue()).toBe(key);
    expect(await form.getByLabel('startTime').inputValue()).toBe('2025-11-09T00:00:00Z');
    expect(await form.getByLabel('endTime').inputValue()).toBe('2025-11-16T00:00:00Z');
  });

  it('sends a body, and nothing before what is required is there', async () => {
    const { page, offences } = await open({ key });
    const form = await tryForm(page, 'createApiKey');
    await form.getByRole('button', { name: 'Send POST' }).click();
    expect(await form.locator('.outcome').textContent()).toBe('clientId is required.');
    await form.getByLabel('clientId').fill('a/b c');
    await form.getByLabel('Body, as JSON').fill('{ "role": "member" }');
    await form.getByRole('button', { name: 'Send POST' }).click();
    await form.locator('.status.ok').waitFor();
    expect(await form.locator('.sent').textContent()).toBe('POST /v0/service_accounts/a%2Fb%20c/api_keys');
    expect(await form.locator('pre.answer').textContent()).toContain('"account": "initech"');
    expect(offences).toEqual([]);
  });

  it('shows a refusal', async () => {
    const { page } = await open();
    const form = await tryForm(page, 'listAccounts');
    await form.getByLabel('limit').fill('none');
    await form.getByRole('button', { name: 'Send GET' }).click();
    expect(await form.locator('.status').textContent()).toBe('401');
    expect(await form.locator('pre.answer').textContent()).toContain('"error": "unauthorized"');
  });
});

describe('the page', () => {
  it('shows all examples in the language that was chosen, also the next time', async () => {
    const { page } = await open();
    const shown = () => page.locator('.codes pre:visible').first().textContent();
    expect(await shown()).toMatch(/^curl -s/);
    await page.getByText('Python', { exact: true }).first().click();
    expect(await shown()).toMatch(/^import json\n/);
    await page.reload();
    expect(await shown()).toMatch(/^import json\n/);
    expect(await page.locator('#listAccounts .codes pre:visible').textContent()).toMatch(/^import json\n/);
  });

  it.each([
    ['light', LIGHT],
    ['dark', DARK],
  ] as const)('has no serious finding in the %s theme', async (colorScheme, color) => {
    const { page } = await open({ prepare: (shown) => shown.emulateMedia({ colorScheme }) });
    expect(await background(page)).toBe(color);
    await tryForm(page, 'createApiKey');
    await tryForm(page, 'getAccountMetrics');
    expect(await graveFindings(page)).toEqual([]);
  });

  it('fits a phone', async () => {
    const { page } = await open({ prepare: (shown) => shown.setViewportSize(PHONE) });
    await tryForm(page, 'getAccountMetrics');
    expect(await sideways(page)).toBeLessThanOrEqual(0);
    await page.getByText('Contents').click();
    expect(await sideways(page)).toBeLessThanOrEqual(0);
  });

  it('has the typeface of the cost explorer, and keeps the same theme', async () => {
    const { page } = await open();
    expect(await page.evaluate(() => document.fonts.check('16px "Inter Variable"'))).toBe(true);
    await page.getByRole('button', { name: 'Use the dark theme' }).click();
    expect(await background(page)).toBe(DARK);
    await page.goto(url);
    await page.getByRole('button', { name: 'Use the light theme' }).click();
    await page.goto(`${url}/docs`);
    expect(await background(page)).toBe(LIGHT);
  });
});
