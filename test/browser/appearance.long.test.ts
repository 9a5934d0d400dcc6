/** Tests the page and the API reference: themes, narrow screens, accessibility, and no requests to other servers. */
import { expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { z } from 'zod';
import {
  accessibilityProblems,
  backgroundBecomes,
  barAt,
  choose,
  chooseOption,
  DARK,
  LIGHT,
  PHONE,
  rightOf,
  setFilter,
  signOut,
  tableRows,
  useExplorer,
  viewOf,
} from './browser.js';

/** Source: web.dev, "Cumulative Layout Shift": below 0.1 is good. */
const GOOD_LAYOUT_SHIFT = 0.1;
const BUSY_VIEW = 'account=acme&group=resource_type,billing_dimension&compare=period';

const explorer = useExplorer();

it('the theme follows the system until the user switches it, and the choice is stored', async () => {
  const { page } = await explorer().visit({ key: explorer().key, guest: { colorScheme: 'light' } });
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
});

it.each(['light', 'dark'] as const)(
  'the page has no serious accessibility problem in the %s theme',
  async (colorScheme) => {
    const { page: signIn } = await explorer().visit({ guest: { colorScheme } });
    await signIn.getByLabel('API key or access token').waitFor();
    expect(await accessibilityProblems(signIn)).toEqual([]);

    const { page } = await explorer().visit({ key: explorer().key, view: BUSY_VIEW, guest: { colorScheme } });
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
        await page.getByRole('combobox', { name: 'Resource type', exact: true }).click();
      },
      () => press(/^Table$/),
    ]) {
      await show();
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.keyboard.press('Escape');
    }
  },
);

it('empty states and error messages have no serious accessibility problem', async () => {
  for (const view of ['name=nobody', 'account=initech']) {
    const page = await explorer().open(view);
    await page.locator('.message h2').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  }
  const { page } = await explorer().visit({ key: await explorer().api.key('fresh') });
  await page.getByRole('heading', { name: 'Send your first event' }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
});

const sideways = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

it('a narrow screen needs no horizontal scrolling', async () => {
  const { page } = await explorer().visit({ key: explorer().key, view: BUSY_VIEW, guest: { viewport: PHONE } });
  await tableRows(page);
  expect(await sideways(page)).toBeLessThanOrEqual(0);
  const grouping = page.getByRole('combobox', { name: 'Group by' }).locator('.control-value');
  expect(await grouping.evaluate((value) => getComputedStyle(value).clipPath)).toBe('none');
  for (const list of [/^Period/, /^Group by/, /^Options/]) {
    await page
      .getByRole('button', { name: list })
      .or(page.getByRole('combobox', { name: list }))
      .click();
    expect(await sideways(page)).toBeLessThanOrEqual(0);
    const panel = page.locator('.panel:visible');
    expect((await panel.boundingBox())?.x).toBeGreaterThanOrEqual(0);
    expect(await rightOf(panel)).toBeLessThanOrEqual(PHONE.width);
    await page.keyboard.press('Escape');
    await panel.waitFor({ state: 'detached' });
  }
  const chart = await page.getByTestId('chart').boundingBox();
  // Above the fold.
  expect((chart?.y ?? Number.NaN) + (chart?.height ?? Number.NaN)).toBeLessThan(PHONE.height);
  await setFilter(page, 'Resource type', { values: ['Sandbox'] });
  await page.getByRole('button', { name: 'Filters 1 active' }).waitFor();
});

it('on a desktop, every list opens inside the window, and costs are close to names', async () => {
  const { page } = await explorer().visit({ key: explorer().key, view: 'account=acme&group=resource_type' });
  await tableRows(page);
  for (const name of [/^Period/, /^Options/, 'Export CSV', 'Copy as']) {
    await page.getByRole('button', { name }).click();
    const panel = page.locator('.panel:visible');
    const { y = 0, height = 0 } = (await panel.boundingBox()) ?? {};
    expect([name, y >= 0, y + height <= 900]).toEqual([name, true, true]);
    await page.keyboard.press('Escape');
    await panel.waitFor({ state: 'detached' });
  }
  await page.setViewportSize({ width: 1920, height: 1080 });
  const row = page.locator('tbody tr').first();
  const cost = await row.locator('td').first().boundingBox();
  expect(Number(cost?.x) - (await rightOf(row.locator('.group-name')))).toBeLessThan(300);
});

it('on a touch screen, the first tap describes a bar and the second tap opens it', async () => {
  const guest = { viewport: PHONE, hasTouch: true };
  const { page } = await explorer().visit({ key: explorer().key, view: 'account=acme', guest });
  await tableRows(page);
  const place = await barAt(page, 28, 30, 20);
  await page.touchscreen.tap(...place);
  await page.getByText('Fri, 14 Nov 2025 UTC').waitFor();
  for (const bar of [2, 15]) {
    await page.touchscreen.tap(...(await barAt(page, bar, 30, 20)));
    const shown = await page.locator('.tooltip').boundingBox();
    expect([Number(shown?.x) >= 0, (shown?.x ?? 0) + (shown?.width ?? 0) <= PHONE.width]).toEqual([true, true]);
  }
  await page.touchscreen.tap(...place);
  await page.touchscreen.tap(...place);
  await page.getByRole('columnheader', { name: 'Resource', exact: true }).waitFor();
  expect(viewOf(page)).toMatchObject({ group: 'resource_name', type: 'agent' });
});

it('nothing moves while the page loads', async () => {
  const { page } = await explorer().visit({ key: explorer().key, view: 'account=acme' });
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
        // Without a shift, the observer is never called.
        setTimeout(() => resolve(0), 300);
      }),
  );
  expect(shift).toBeLessThan(GOOD_LAYOUT_SHIFT);
});

it('the sign-in form rejects a provisioner key with an explanation', async () => {
  const { page } = await explorer().visit({ guest: {} });
  await page.getByLabel('API key or access token').fill(await explorer().api.key(undefined, 'provisioner'));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('This key has the provisioner role, which manages accounts and keys').waitFor();
  expect(await page.getByLabel('API key or access token').isEnabled()).toBe(true);
});

it('the page loads nothing from other servers, and no action violates the content security policy', async () => {
  const { page, offences } = await explorer().visit({ guest: {} });
  await page.getByLabel('API key or access token').fill(explorer().key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await tableRows(page);
  await choose(page, 'Group by', 'Resource');
  await chooseOption(page, 'Compare with', 'Previous period');
  await page.getByRole('slider').hover();
  await page.getByRole('button', { name: 'Export CSV' }).click();
  await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: /^Groups/ }).click()]);
  await page.getByRole('button', { name: 'Table', exact: true }).click();
  await page.getByRole('button', { name: 'Use the dark theme' }).click();
  await setFilter(page, 'Resource', { values: ['support'] });
  await signOut(page);
  await page.getByLabel('API key or access token').waitFor();
  expect(offences).toEqual([]);
  // A violation would be recorded.
  await page.evaluate(() => fetch('https://evil.example.com').catch(() => undefined));
  await page.waitForTimeout(0);
  expect(offences.join()).toContain('evil.example.com');
});

/** Problems of Swagger UI itself: colors, a link inside a button, scrolling blocks, and lists of examples without a label. */
const KNOWN_FINDINGS = ['color-contrast', 'nested-interactive', 'scrollable-region-focusable', 'select-name'];

it('the API reference shows every operation, fits a phone, and logs nothing', async () => {
  const messages: string[] = [];
  const { page, offences } = await explorer().visit({
    path: 'docs',
    guest: { colorScheme: 'dark' },
    // Swagger UI waits by the clock of the page before it resolves references.
    now: 'real',
    prepare: async (shown) => shown.on('console', (message) => messages.push(message.text())),
  });
  const openApi = await (await fetch(`${explorer().api.url}/openapi.json`)).json();
  const { paths } = z.object({ paths: z.record(z.string(), z.looseObject({})) }).parse(openApi);
  const operations = Object.values(paths).flatMap(Object.keys);
  const blocks = page.locator('.opblock');
  await blocks.nth(operations.length - 1).waitFor();
  expect(await blocks.count()).toBe(operations.length);
  await page.locator('[id$=getAccountMetrics] .opblock-summary-control').click();
  await page.getByText('Returns usage and cost in a window').waitFor();
  expect(await page.locator('html.dark-mode').count()).toBe(1);
  const found = (await accessibilityProblems(page)).map((finding) => finding.split(':')[0]);
  expect(found.filter((id = '') => !KNOWN_FINDINGS.includes(id))).toEqual([]);
  await page.setViewportSize(PHONE);
  expect(await sideways(page)).toBe(0);
  expect([...messages, ...offences]).toEqual([]);
});
