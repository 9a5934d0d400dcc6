/** Chromium with the web page of a real query service, used as a person would use it. */
import { access } from 'node:fs/promises';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { NOW, startApi, type TestApi } from '../harness/api.js';
import { ensureChromium } from '../setup/chromium-binary.mjs';
import { PAGE_FOLDER } from './page-folder.js';

/** For one thing to appear; generous, because the machine may be busy with other tests. */
const PATIENCE_MS = 15_000;
const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'];

export async function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: await ensureChromium(), args: ARGUMENTS });
}

/** The API with the page, in this process. */
export async function startPage(replace: Parameters<typeof startApi>[0] = {}): Promise<TestApi> {
  await access(PAGE_FOLDER).catch((cause) => {
    throw new Error('the web page is not built: run npm test, or npm run build', { cause });
  });
  return startApi({ pageFolder: PAGE_FOLDER, ...replace });
}

/**
 * A profile of its own, in a time zone far from UTC, which must not show. Without animations, because a browser without a
 * graphics card draws each frame with the processor. Its first page stays empty and open (see {@link closePages}): a new
 * window of Chromium costs a second of processor time, and further pages are tabs of the same window.
 */
export async function newContext(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
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

/** Closes all pages but the empty one, and those given. */
export async function closePages(context: BrowserContext, ...kept: readonly Page[]): Promise<void> {
  const [_empty, ...visited] = context.pages();
  await Promise.all(visited.filter((page) => !kept.includes(page)).map((page) => page.close()));
}

export interface Visit {
  /** In the tab's storage, as after a sign-in; undefined: signed out. */
  readonly key?: string;
  /** Another page than the explorer, without a slash at its beginning. */
  readonly path?: string;
  /** The query string of the view. */
  readonly view?: string;
  /** The page's present; `real`: the machine's clock. */
  readonly now?: Date | 'real';
  /** Runs before the page is opened. */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

/** A page, and what it did against the strictest policy. */
export interface VisitedPage {
  readonly page: Page;
  /** Requests to anywhere else, violations of the content security policy, and exceptions. */
  readonly offences: readonly string[];
}

/** Opens the page in a new tab. */
export async function visit(context: BrowserContext, url: string, options: Visit = {}): Promise<VisitedPage> {
  const { key, path = '', view = '', now = NOW } = options;
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  // Not the driver's own clock: it replaces Date, and date-fns does not recognise the replacement.
  if (now !== 'real') await page.addInitScript((time) => (Date.now = () => time), now.getTime());
  const offences = watchOffences(page, url);
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      console.error(`policy: ${violatedDirective} ${blockedURI}`);
    });
  });
  if (key !== undefined) await keepKey(page, key);
  await options.prepare?.(page);
  await page.goto(`${url}/${path}${view === '' ? '' : `?${view}`}`);
  return { page, offences };
}

/**
 * Shows another view in an open page, as the back and forward buttons do, and waits for its answer. Nothing is loaded
 * again, which is what takes most of the time of a visit.
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

/** On the first load only, so that a sign-out lasts. */
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

/** The table of groups, once it shows the answer to the last question. */
function settledGroups(page: Page) {
  return page.getByRole('region', { name: 'Groups', exact: true }).and(page.locator('[aria-busy=false]'));
}

/** The colours of the themes. */
export const LIGHT = 'rgb(246, 247, 249)';
export const DARK = 'rgb(14, 17, 21)';

/** The page hears of a change of the system's theme a moment after the browser took it. */
export async function backgroundBecomes(page: Page, colour: string): Promise<void> {
  await page.waitForFunction((wanted) => getComputedStyle(document.body).backgroundColor === wanted, colour);
}

/** The text of the rows of the table of groups, cell by cell, without the total. */
export async function tableRows(page: Page): Promise<string[][]> {
  const rows = settledGroups(page).locator('tbody tr');
  await rows.first().waitFor();
  return rows.evaluateAll((found) =>
    found.map((row) => [...row.children].map((cell) => cell.textContent?.trim() ?? '')),
  );
}

/** The cells of the total of all groups. */
export async function tableTotal(page: Page): Promise<string[]> {
  const cells = settledGroups(page).locator('tfoot tr > *');
  await cells.first().waitFor();
  return cells.evaluateAll((found) => found.map((cell) => cell.textContent?.trim() ?? ''));
}

/** Chooses in one of the lists of the options. */
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

/** Sets a filter to the values that its list finds. @param mode what the values mean */
export async function setFilter(
  page: Page,
  filter: string,
  { search, values, mode = 'Only' }: { search?: string; values: readonly string[]; mode?: 'Only' | 'All but' },
): Promise<void> {
  await unfoldFilters(page);
  await page.getByRole('group', { name: 'Filters' }).getByRole('combobox', { name: filter }).click();
  if (search !== undefined) await page.keyboard.type(search);
  for (const value of values) await page.getByRole('option', { name: value }).first().click();
  await page.getByRole('button', { name: mode, exact: true }).click();
  await page.getByRole('button', { name: /^Apply/ }).click();
}

/** Chooses from one of the lists above the figures. */
export async function choose(page: Page, list: string | RegExp, option: string): Promise<void> {
  await page.getByRole('combobox', { name: list }).click();
  await page.getByRole('option', { name: option }).first().click();
}

/** The view in the address bar. */
export function viewOf(page: Page): Record<string, string> {
  return Object.fromEntries(new URL(page.url()).searchParams);
}
