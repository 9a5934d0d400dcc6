/** A signed-in cost explorer of the account acme, for the tests of one file. */
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { TestApi } from '../harness/api.js';
import { ACME } from './acme.js';
import { closePages, launchBrowser, newContext, showView, startPage, visit } from './browser.js';

export interface Explorer {
  readonly api: TestApi;
  readonly browser: Browser;
  readonly context: BrowserContext;
  readonly key: string;
  /** Signed in, and used by all tests that only need a view. */
  open(view?: string): Promise<Page>;
}

/** Starts one before the tests of the file that calls it, and ends it after them. @returns how to reach it once it has started */
export function useExplorer(): () => Explorer {
  let explorer: Explorer & { readonly page: Page };
  beforeAll(async () => {
    const [api, browser] = await Promise.all([startPage(), launchBrowser()]);
    await api.seed(ACME);
    const key = await api.key('acme');
    const context = await newContext(browser);
    const { page } = await visit(context, api.url, { key, view: 'account=acme' });
    const open = async (view = '') => {
      await showView(page, view === '' ? 'account=acme' : `account=acme&${view}`);
      return page;
    };
    explorer = { api, browser, context, key, page, open };
  });
  afterEach(() => closePages(explorer.context, explorer.page));
  afterAll(async () => {
    await explorer?.browser.close();
    await explorer?.api.stop();
  });
  return () => explorer;
}

export const NOV_14 = { from: '2025-11-14T00:00:00Z', to: '2025-11-15T00:00:00Z' };

/** The value of a figure above the chart. */
export const figure = (page: Page, title: string) =>
  page.locator('.figure', { hasText: title }).locator('.figure-value');

/** The middle of a bar's column, that much above the axis. */
export async function barAt(page: Page, bucket: number, buckets: number, above: number) {
  const chart = page.getByTestId('chart');
  const box = await chart.boundingBox();
  if (!box) throw new Error('there is no chart');
  const plot = { left: Number(await chart.getAttribute('data-left')), right: 8, bottom: 28 };
  const x = plot.left + ((bucket + 0.5) * (box.width - plot.left - plot.right)) / buckets;
  return [box.x + x, box.y + box.height - plot.bottom - above] as const;
}
