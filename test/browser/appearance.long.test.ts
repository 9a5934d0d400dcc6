/** How the page looks and what it needs: themes, narrow screens, accessibility, and no requests to elsewhere. */
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { TestApi } from '../harness/api.js';
import { graveFindings } from './accessibility.js';
import { ACME } from './acme.js';
import {
  backgroundBecomes,
  choose,
  chooseOption,
  closePages,
  DARK,
  LIGHT,
  launchBrowser,
  newContext,
  setFilter,
  startPage,
  tableRows,
  viewOf,
  visit,
} from './browser.js';
import { barAt } from './explorer-page.js';

/** Source: web.dev, "Cumulative Layout Shift": below 0.1 is good. */
const GOOD_LAYOUT_SHIFT = 0.1;
const PHONE = { width: 390, height: 844 };

let api: TestApi;
let browser: Browser;
let context: BrowserContext;
let key: string;

beforeAll(async () => {
  [api, browser] = await Promise.all([startPage(), launchBrowser()]);
  await api.seed(ACME);
  key = await api.key('acme');
  context = await newContext(browser);
});
afterEach(() => closePages(context));
afterAll(async () => {
  await browser?.close();
  await api?.stop();
});

const BUSY_VIEW = 'account=acme&group=resource_type,billing_dimension&compare=period';
/** axe checks the whole page several times. */
const SLOW_MS = 60_000;

it("the theme is the system's, can be switched, and is remembered then", async () => {
  const own = await newContext(browser, { colorScheme: 'light' });
  const { page } = await visit(own, api.url, { key });
  await tableRows(page);
  await backgroundBecomes(page, LIGHT);
  await page.emulateMedia({ colorScheme: 'dark' });
  await backgroundBecomes(page, DARK);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.getByRole('button', { name: 'Use the dark theme' }).click();
  await backgroundBecomes(page, DARK);
  await page.reload();
  await page.getByRole('button', { name: 'Use the light theme' }).waitFor();
  await backgroundBecomes(page, DARK);
  await own.close();
});

it.each(['light', 'dark'] as const)(
  'the page has no serious finding of accessibility in the %s theme',
  async (colorScheme) => {
    const prepare = (shown: Page) => shown.emulateMedia({ colorScheme });
    const { page: signIn } = await visit(context, api.url, { prepare });
    await signIn.getByLabel('API key or access token').waitFor();
    expect(await graveFindings(signIn)).toEqual([]);

    const { page } = await visit(context, api.url, { key, view: BUSY_VIEW, prepare });
    await tableRows(page);
    const press = (name: RegExp) => page.getByRole('button', { name }).click();
    for (const show of [
      async () => undefined,
      () => page.getByRole('slider').press('End'),
      () => page.getByRole('slider').press('ArrowLeft'),
      () => press(/^Period/),
      () => press(/^Options/),
      async () => {
        await press(/^Filters/);
        await page.getByRole('combobox', { name: 'Type', exact: true }).click();
      },
      () => press(/^Table$/),
    ]) {
      await show();
      expect(await graveFindings(page)).toEqual([]);
      await page.keyboard.press('Escape');
    }
  },
  SLOW_MS,
);

it(
  'the pages of an empty account and of a problem have no serious finding of accessibility',
  async () => {
    for (const view of ['account=acme&name=nobody', 'account=initech']) {
      const { page } = await visit(context, api.url, { key, view });
      await page.locator('.message h2').waitFor();
      expect(await graveFindings(page)).toEqual([]);
    }
    const { page } = await visit(context, api.url, { key: await api.key('fresh') });
    await page.getByRole('heading', { name: 'Send the first event' }).waitFor();
    expect(await graveFindings(page)).toEqual([]);
  },
  SLOW_MS,
);

it('a narrow screen shows everything without scrolling sideways', async () => {
  const prepare = (shown: Page) => shown.setViewportSize(PHONE);
  const { page } = await visit(context, api.url, { key, view: BUSY_VIEW, prepare });
  await tableRows(page);
  const sideways = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(await sideways()).toBeLessThanOrEqual(0);
  for (const list of [/^Period/, /^Group by/, /^Options/]) {
    await page
      .getByRole('button', { name: list })
      .or(page.getByRole('combobox', { name: list }))
      .click();
    expect(await sideways()).toBeLessThanOrEqual(0);
    const panel = await page.locator('.panel:visible').boundingBox();
    expect(panel?.x).toBeGreaterThanOrEqual(0);
    expect((panel?.x ?? 0) + (panel?.width ?? Number.NaN)).toBeLessThanOrEqual(PHONE.width);
    await page.keyboard.press('Escape');
    await page.locator('.panel:visible').waitFor({ state: 'detached' });
  }
  const chart = await page.getByTestId('chart').boundingBox();
  // Above the fold.
  expect((chart?.y ?? Number.NaN) + (chart?.height ?? Number.NaN)).toBeLessThan(PHONE.height);
  await setFilter(page, 'Type', { values: ['Sandbox'] });
  await page.getByRole('button', { name: 'Filters 1 set' }).waitFor();
});

it('a touch screen shows what a bar is at the first tap, and opens it at the second', async () => {
  const touched = await newContext(browser, { viewport: PHONE, hasTouch: true });
  const { page } = await visit(touched, api.url, { key, view: 'account=acme' });
  await tableRows(page);
  const place = await barAt(page, 28, 30, 20);
  await page.touchscreen.tap(...place);
  await page.getByText('Fri, 14 Nov 2025 UTC').waitFor();
  await page.touchscreen.tap(...place);
  await page.getByRole('columnheader', { name: 'Resource', exact: true }).waitFor();
  expect(viewOf(page)).toMatchObject({ group: 'resource_name', type: 'agent' });
  await touched.close();
});

it('while the page loads nothing jumps', async () => {
  const { page } = await visit(context, api.url, { key, view: 'account=acme' });
  await tableRows(page);
  await page.waitForFunction(() => performance.getEntriesByName('meterline:first-view').length > 0);
  const shift = await page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const observer = new PerformanceObserver((list) => {
          const values = list.getEntries().map((entry) => ('value' in entry ? Number(entry.value) : 0));
          resolve(values.reduce((sum, value) => sum + value, 0));
        });
        observer.observe({ type: 'layout-shift', buffered: true });
        // Without any shift the observer is never called.
        setTimeout(() => resolve(0), 300);
      }),
  );
  expect(shift).toBeLessThan(GOOD_LAYOUT_SHIFT);
});

it('what the page needs comes from this service alone, and nothing that a person does breaks the policy', async () => {
  const { page, offences } = await visit(context, api.url);
  await page.getByLabel('API key or access token').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await tableRows(page);
  await choose(page, 'Group by', 'Resource');
  await chooseOption(page, 'Compare with', 'The period before');
  await page.getByRole('slider').hover();
  await page.getByRole('button', { name: 'Export CSV' }).click();
  await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'The table' }).click()]);
  await page.getByRole('button', { name: 'Table', exact: true }).click();
  await page.getByRole('button', { name: 'Use the dark theme' }).click();
  await setFilter(page, 'Resource', { values: ['support'] });
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key or access token').waitFor();
  expect(offences).toEqual([]);
  // What it would look like.
  await page.evaluate(() => fetch('https://evil.example.com').catch(() => undefined));
  await page.waitForTimeout(0);
  expect(offences.join()).toContain('evil.example.com');
});
