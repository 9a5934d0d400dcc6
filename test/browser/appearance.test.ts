/** How the page looks and what it needs: themes, narrow screens, accessibility, and no requests to elsewhere. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { TestApi } from '../contract/fixture.js';
import { graveFindings } from './accessibility.js';
import { ACME } from './acme.js';
import {
  background,
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
  visit,
} from './browser.js';

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

describe('the theme', () => {
  it.each([
    ['light', LIGHT],
    ['dark', DARK],
  ] as const)("is the system's: %s", async (colorScheme, color) => {
    const { page } = await visit(context, api.url, { key, prepare: (shown) => shown.emulateMedia({ colorScheme }) });
    expect(await background(page)).toBe(color);
  });

  it('can be switched, and is remembered', async () => {
    const own = await newContext(browser, { colorScheme: 'light' });
    const { page } = await visit(own, api.url, { key });
    await tableRows(page);
    await page.getByRole('button', { name: 'Use the dark theme' }).click();
    expect(await background(page)).toBe(DARK);
    await page.reload();
    await page.getByRole('button', { name: 'Use the light theme' }).waitFor();
    expect(await background(page)).toBe(DARK);
    await own.close();
  });
});

describe('accessibility', () => {
  it.each(['light', 'dark'] as const)(
    'has no serious finding in the %s theme',
    async (colorScheme) => {
      const prepare = (shown: Page) => shown.emulateMedia({ colorScheme });
      const { page: signIn } = await visit(context, api.url, { prepare });
      await signIn.getByLabel('API key or access token').waitFor();
      expect(await graveFindings(signIn)).toEqual([]);

      const { page } = await visit(context, api.url, { key, view: BUSY_VIEW, prepare });
      await tableRows(page);
      expect(await graveFindings(page)).toEqual([]);
      await page.getByRole('slider').press('End');
      await page.getByRole('slider').press('ArrowLeft');
      expect(await graveFindings(page)).toEqual([]);
      await page.getByRole('button', { name: /^Period/ }).click();
      expect(await graveFindings(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: /^Options/ }).click();
      expect(await graveFindings(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: /^Filters/ }).click();
      await page.getByRole('button', { name: 'Type All' }).click();
      expect(await graveFindings(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Table', exact: true }).click();
      expect(await graveFindings(page)).toEqual([]);
    },
    SLOW_MS,
  );

  it(
    'of an empty account and of a problem too',
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
});

describe('a narrow screen', () => {
  it('shows everything without scrolling sideways', async () => {
    const prepare = (shown: Page) => shown.setViewportSize(PHONE);
    const { page } = await visit(context, api.url, { key, view: BUSY_VIEW, prepare });
    await tableRows(page);
    const sideways = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(await sideways()).toBeLessThanOrEqual(0);
    for (const list of [/^Period/, /^Group by/, /^Options/]) {
      await page.getByRole('button', { name: list }).click();
      expect(await sideways()).toBeLessThanOrEqual(0);
      const panel = await page.getByRole('dialog').boundingBox();
      expect(panel?.x).toBeGreaterThanOrEqual(0);
      expect((panel?.x ?? 0) + (panel?.width ?? Number.NaN)).toBeLessThanOrEqual(PHONE.width);
      await page.keyboard.press('Escape');
    }
    const chart = await page.getByTestId('chart').boundingBox();
    // Above the fold.
    expect((chart?.y ?? Number.NaN) + (chart?.height ?? Number.NaN)).toBeLessThan(PHONE.height);
    await setFilter(page, 'Type', { values: ['Sandbox'] });
    await page.getByRole('button', { name: 'Filters 1 set' }).waitFor();
  });
});

describe('while it loads', () => {
  it('nothing jumps', async () => {
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
});

describe('what the page needs', () => {
  it('comes from this service alone, and nothing that a person does breaks the policy', async () => {
    const { page, offences } = await visit(context, api.url);
    await page.getByLabel('API key or access token').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await tableRows(page);
    await choose(page, /^Group by/, 'Resource');
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
  });

  it('would be refused from elsewhere', async () => {
    const { page, offences } = await visit(context, api.url);
    await page.evaluate(() => fetch('https://evil.example.com').catch(() => undefined));
    await page.waitForTimeout(0);
    expect(offences.join()).toContain('evil.example.com');
  });
});
