/** The API's reference in a browser. What it is made from is tested in test/contract/reference. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { z } from 'zod';
import { startApi, type TestApi } from '../harness/api.js';
import { graveFindings } from './accessibility.js';
import { launchBrowser, newContext, visit } from './browser.js';

/** Swagger UI's own: colours, a link inside a button, blocks that scroll and lists of examples without a label. */
const KNOWN_FINDINGS = ['color-contrast', 'nested-interactive', 'scrollable-region-focusable', 'select-name'];

let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  [api, browser] = await Promise.all([startApi(), launchBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await api?.stop();
});

it('the reference shows every operation, fits a phone, and the console stays empty', async () => {
  const context = await newContext(browser, { colorScheme: 'dark' });
  const messages: string[] = [];
  const { page, offences } = await visit(context, api.url, {
    path: 'docs',
    // Swagger UI waits by the clock before it resolves references.
    now: 'real',
    prepare: async (shown) => shown.on('console', (message) => messages.push(message.text())),
  });
  const openApi = await (await fetch(`${api.url}/openapi.json`)).json();
  const { paths } = z.object({ paths: z.record(z.string(), z.looseObject({})) }).parse(openApi);
  const operations = Object.values(paths).flatMap(Object.keys);
  await page
    .locator('.opblock')
    .nth(operations.length - 1)
    .waitFor();
  expect(await page.locator('.opblock').count()).toBe(operations.length);
  await page.locator('[id$=getAccountMetrics] .opblock-summary-control').click();
  await page.getByText('Sums up usage and cost over a window').waitFor();
  expect(await page.locator('html.dark-mode').count()).toBe(1);
  // It would show rounded amounts.
  expect(await page.getByRole('button', { name: /try it|execute|authorize/i }).count()).toBe(0);

  const found = (await graveFindings(page)).map((finding) => finding.split(':')[0]);
  expect(found.filter((id = '') => !KNOWN_FINDINGS.includes(id))).toEqual([]);
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  expect([...messages, ...offences]).toEqual([]);
});
