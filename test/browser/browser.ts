/** Chromium, and the web page of a real query service in it, as somebody would use it. */
import { access } from 'node:fs/promises';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { NOW, startApi, type TestApi } from '../contract/fixture.js';
import { ensureChromium } from '../setup/chromium-binary.mjs';
import { PAGE_FOLDER } from './page-folder.js';

/** For one thing to appear; generous, because everything else on the machine may be at work too. */
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

/** What a browser remembers between pages, and where it believes to be: far from UTC, which must not show. */
export function newContext(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  return browser.newContext({
    viewport: { width: 1280, height: 900 },
    timezoneId: 'America/New_York',
    locale: 'en-US',
    ...options,
  });
}

export async function closePages(context: BrowserContext): Promise<void> {
  for (const page of context.pages()) await page.close();
}

export interface Visit {
  /** Kept for the tab, as after a sign-in; undefined: signed out. */
  readonly key?: string;
  /** The query string of the view. */
  readonly view?: string;
  /** What the page takes for the present; `real` for the machine's clock. */
  readonly now?: Date | 'real';
  /** Before the page is opened. */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

/** A page, and what it did that a strict policy forbids. */
export interface VisitedPage {
  readonly page: Page;
  /** Requests to anywhere else, violations of the content security policy, and exceptions. */
  readonly offences: readonly string[];
}

/** In a tab of its own. */
export async function visit(context: BrowserContext, url: string, options: Visit = {}): Promise<VisitedPage> {
  const { key, view = '', now = NOW } = options;
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  // Not the browser driver's own clock, which replaces Date: date-fns would take it for one without methods.
  if (now !== 'real') await page.addInitScript((time) => (Date.now = () => time), now.getTime());
  const offences = watchOffences(page, url);
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      console.error(`policy: ${violatedDirective} ${blockedURI}`);
    });
  });
  if (key !== undefined) await keepKey(page, key);
  await options.prepare?.(page);
  await page.goto(`${url}/${view === '' ? '' : `?${view}`}`);
  return { page, offences };
}

/** At the first page only: signing out is for good. */
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

/** The table of groups, once it is the answer to what was asked last. */
function settledGroups(page: Page) {
  return page.getByRole('region', { name: 'Groups', exact: true }).and(page.locator('[aria-busy=false]'));
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

/** Chooses from one of the lists above the figures. */
export async function choose(page: Page, list: string | RegExp, option: string): Promise<void> {
  await page.getByRole('button', { name: list }).click();
  await page.getByRole('option', { name: option, exact: false }).first().click();
}

/** What the view in the address bar says. */
export function viewOf(page: Page): Record<string, string> {
  return Object.fromEntries(new URL(page.url()).searchParams);
}
