/** Runs Chromium with the page of a real query service, and provides the steps of a user. */
import { access, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import type { AxeResults } from 'axe-core';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core';
import { NOW, startApi, type TestApi } from '../harness/api.js';
import { PAGE_FOLDER } from '../harness/programs.js';
import { LIMIT_MS } from '../harness/waiting.js';
import { ensureChromium } from '../setup/chromium-binary.mjs';
import { ACME } from './acme.js';

const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'];

export interface Explorer {
  readonly api: TestApi;
  /** The key of an admin of the account acme. */
  readonly key: string;
  /** Opens a view in a shared page, signed in with the key. The account is acme unless the view names another. */
  open(view?: string): Promise<Page>;
  /** Opens a new page, which closes after the test. */
  visit(options?: Visit): Promise<VisitedPage>;
}

/**
 * Starts the API with the page in this process, a browser, and the events of acme, for the calling test file.
 * @returns a function that returns the explorer once it has started
 */
export function useExplorer(
  replace: () => Parameters<typeof startApi>[0] | Promise<Parameters<typeof startApi>[0]> = () => ({}),
): () => Explorer {
  let explorer: Explorer;
  let page: Page;
  let browser: Browser;
  let guests: BrowserContext[] = [];
  beforeAll(async () => {
    await access(PAGE_FOLDER).catch((cause) => {
      throw new Error('the web page is not built: run npm run build', { cause });
    });
    const launch = async () => chromium.launch({ executablePath: await ensureChromium(), args: ARGUMENTS });
    let api: TestApi;
    [api, browser] = await Promise.all([startApi({ pageFolder: PAGE_FOLDER, ...(await replace()) }), launch()]);
    await api.seed(ACME);
    await registerPriceBook(oneServer(api.dependencies.warehouse), DEFAULT_PRICE_BOOK);
    const key = await api.key('acme');
    const context = await newContext(browser);
    const open = async (view = '') => {
      await showView(page, [...(view.includes('account') ? [] : ['account=acme']), view].filter(Boolean).join('&'));
      return page;
    };
    const visit = async ({ guest, ...options }: Visit = {}) => {
      if (!guest) return visitIn(context, api.url, options);
      guests.push(await newContext(browser, guest));
      return visitIn(guests.at(-1) ?? context, api.url, options);
    };
    explorer = { api, key, open, visit };
    ({ page } = await visit({ key, view: 'account=acme' }));
  });
  afterEach(async () => {
    const [_empty, ...visited] = page.context().pages();
    const ended = [...visited.filter((each) => each !== page), ...guests];
    guests = [];
    await Promise.all(ended.map((each) => each.close()));
  });
  afterAll(async () => {
    await browser?.close();
    await explorer?.api.stop();
  });
  return () => explorer;
}

/**
 * Creates a profile in a time zone far from UTC, which must not affect the page. Animations are off, because a browser without a graphics
 * card draws each frame with the processor. The first page stays open and empty: a new window of Chromium costs a second of processor
 * time, and further pages are tabs of the same window.
 */
async function newContext(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    timezoneId: 'America/New_York',
    locale: 'en-US',
    reducedMotion: 'reduce',
    ...options,
  });
  await context.newPage();
  return context;
}

export interface Visit {
  /** Stored in the tab, as after a sign-in; undefined to be signed out. */
  readonly key?: string;
  /** The path of a page other than the explorer, without a leading slash. */
  readonly path?: string;
  /** A page of another server. */
  readonly url?: string;
  /** The query string of the view. */
  readonly view?: string;
  /** The time of the page; `real` for the clock of the machine. */
  readonly now?: Date | 'real';
  /** Opens a new profile, in which no user is signed in. */
  readonly guest?: BrowserContextOptions;
  /** Runs before the page is opened. */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

/** A page and its violations of the strictest policy. */
export interface VisitedPage {
  readonly page: Page;
  /** Requests to other servers, violations of the content security policy, and exceptions. */
  readonly offences: readonly string[];
}

/** Opens the page in a new tab. */
export async function visitIn(context: BrowserContext, url: string, options: Visit = {}): Promise<VisitedPage> {
  const { key, path = '', view = '', now = NOW } = options;
  const page = await context.newPage();
  page.setDefaultTimeout(LIMIT_MS);
  // Playwright's own clock replaces Date, and date-fns does not recognize the replacement.
  if (now !== 'real') await page.addInitScript((time) => (Date.now = () => time), now.getTime());
  const offences = watchOffences(page, url);
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      console.error(`policy: ${violatedDirective} ${blockedURI}`);
    });
  });
  if (key !== undefined) await keepKey(page, key);
  await options.prepare?.(page);
  await page.goto(options.url ?? `${url}/${path}${view === '' ? '' : `?${view}`}`);
  return { page, offences };
}

/**
 * Shows another view in an open page, as the back and forward buttons do, and waits for its response. Loading the page again would take most
 * of the time of a test.
 */
export async function showView(page: Page, view: string): Promise<void> {
  await page.mouse.move(0, 0);
  await page.keyboard.press('Escape');
  await page.evaluate((query) => {
    history.pushState(null, '', `/?${query}`);
    window.dispatchEvent(new PopStateEvent('popstate'));
  }, view);
  await page.waitForFunction(() => document.querySelector('.content.stale, [aria-busy=true]') === null);
}

/** Stores the key on the first load only, so that a sign-out lasts. */
async function keepKey(page: Page, key: string): Promise<void> {
  await page.addInitScript((kept) => {
    if (sessionStorage.getItem('test') === null) sessionStorage.setItem('meterline.credential', kept);
    sessionStorage.setItem('test', 'visited');
  }, key);
}

function watchOffences(page: Page, url: string): string[] {
  const offences: string[] = [];
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== url && protocol !== 'blob:' && protocol !== 'data:') offences.push(`request to ${request.url()}`);
  });
  page.on('console', (message) => {
    if (/policy/i.test(message.text())) offences.push(message.text());
  });
  page.on('pageerror', (error) => offences.push(`exception ${error.stack ?? error.message}`));
  return offences;
}

/** Locates the table of groups once it shows the response to the last query. */
function settledGroups(page: Page) {
  return page.getByRole('region', { name: 'Groups', exact: true }).and(page.locator('[aria-busy=false]'));
}

/** The background colors of the themes. */
export const LIGHT = 'rgb(246, 247, 249)';
export const DARK = 'rgb(14, 17, 21)';

/** Waits for a background color. A change of the system's theme reaches the page with a delay. */
export async function backgroundBecomes(page: Page, color: string): Promise<void> {
  await page.waitForFunction((wanted) => getComputedStyle(document.body).backgroundColor === wanted, color);
}

/** Returns the texts of the cells of the table of groups, without the total. */
export async function tableRows(page: Page): Promise<string[][]> {
  const rows = settledGroups(page).locator('tbody tr');
  await rows.first().waitFor();
  return rows.evaluateAll((found) =>
    found.map((row) => [...row.children].map((cell) => cell.textContent?.trim() ?? '')),
  );
}

/** Returns the texts of the total of all groups. */
export async function tableTotal(page: Page): Promise<string[]> {
  const cells = settledGroups(page).locator('tfoot tr > *');
  await cells.first().waitFor();
  return cells.evaluateAll((found) => found.map((cell) => cell.textContent?.trim() ?? ''));
}

/** Waits for a column of the table of groups. */
export const columnAppears = (page: Page, name: string) =>
  page.getByRole('columnheader', { name, exact: true }).waitFor();

/** Waits for the total of the table of groups. */
export const totalBecomes = (page: Page, amount: string) =>
  page.getByRole('row', { name: `Total of all groups ${amount}` }).waitFor();

/** Chooses from a list in the options. */
export async function chooseOption(page: Page, list: string, option: string): Promise<void> {
  await page.getByRole('button', { name: /^Options/ }).click();
  await page.getByRole('combobox', { name: list }).click();
  await page.getByRole('option', { name: option }).click();
  await page.keyboard.press('Escape');
}

/** Shows the row of filters. */
export async function unfoldFilters(page: Page): Promise<void> {
  const unfold = page.getByRole('button', { name: /^Filters/ });
  if ((await unfold.getAttribute('aria-expanded')) === 'false') await unfold.click();
}

/** Sets a filter to values of its list. @param mode whether to include or exclude the values */
export async function setFilter(
  page: Page,
  filter: string,
  { search, values, mode = 'Include' }: { search?: string; values: readonly string[]; mode?: 'Include' | 'Exclude' },
): Promise<void> {
  await unfoldFilters(page);
  await page.getByRole('group', { name: 'Filters' }).getByRole('combobox', { name: filter, exact: true }).click();
  if (search !== undefined) await page.keyboard.type(search);
  for (const value of values) await page.getByRole('option', { name: value }).first().click();
  await page.getByRole('button', { name: mode, exact: true }).click();
  await page.getByRole('button', { name: /^Apply/ }).click();
}

export async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Menu', exact: true }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
}

/** Chooses from a list above the figures. */
export async function choose(page: Page, list: string | RegExp, option: string): Promise<void> {
  await page.getByRole('combobox', { name: list }).click();
  await page.getByRole('option', { name: option }).first().click();
}

/** Downloads the CSV file of a button. */
export async function exported(page: Page, what: string): Promise<{ name: string; lines: string[] }> {
  await page.getByRole('button', { name: 'Export CSV' }).click();
  const button = page.getByRole('dialog').getByRole('button', { name: what });
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
  const text = await readFile(await download.path(), 'utf8');
  return { name: download.suggestedFilename(), lines: text.trimEnd().split('\r\n') };
}

/** Returns the view in the address bar. */
export function viewOf(page: Page): Record<string, string> {
  return Object.fromEntries(new URL(page.url()).searchParams);
}

export const NOV_14 = { from: '2025-11-14T00:00:00Z', to: '2025-11-15T00:00:00Z' };

/** Locates the value of a figure above the chart. */
export const figure = (page: Page, title: string) =>
  page.locator('.figure', { hasText: title }).locator('.figure-value');

/** Returns the center of a bar's column. @param above pixels above the axis */
export async function barAt(page: Page, bucket: number, buckets: number, above: number) {
  const chart = page.getByTestId('chart');
  const box = await chart.boundingBox();
  if (!box) throw new Error('there is no chart');
  const plot = { left: Number(await chart.getAttribute('data-left')), right: 8, bottom: 28 };
  const x = plot.left + ((bucket + 0.5) * (box.width - plot.left - plot.right)) / buckets;
  return [box.x + x, box.y + box.height - plot.bottom - above] as const;
}

/** The impacts that users notice. Source: axe-core, "impact" of a violation. */
const SEVERE: readonly (string | null | undefined)[] = ['serious', 'critical'];

const axe = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Returns the serious accessibility problems that axe finds. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  // Playwright evaluates the script, because the page's policy forbids scripts of other servers.
  await page.evaluate(await axe);
  const { violations }: AxeResults = await page.evaluate("axe.run({ resultTypes: ['violations'] })");
  return violations
    .filter(({ impact }) => SEVERE.includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html, any }) => `${html} ${any[0]?.message ?? ''}`).join('; ')}`);
}

export const PHONE = { width: 390, height: 844 };

/** Returns the right edge of an element, in pixels from the left edge of the window. */
export async function rightOf(element: Locator): Promise<number> {
  const box = await element.boundingBox();
  return box ? box.x + box.width : Number.NaN;
}
