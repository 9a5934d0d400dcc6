/** Tests the page embedded in a page of another origin, which provides an expiring key. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { Frame, Page } from 'playwright-core';
import { NOW } from '../harness/api.js';
import { listening } from '../harness/listening.js';
import { DARK, LIGHT, useExplorer } from './browser.js';

/** A page that embeds the address in its query, and does nothing else. */
const HOST = `<!doctype html><title>A platform</title><iframe style="width: 1200px; height: 900px"></iframe>
  <script>document.querySelector('iframe').src = new URLSearchParams(location.search).get('page')</script>`;
const GUIDE = readFileSync(new URL('../../docs/guides/embedding.md', import.meta.url), 'utf8');
const codeOf = (language: string) => new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(GUIDE)?.[1] ?? '';
/** The backend code of the guide, with the clock of the API. */
const costsKey: (account: string) => Promise<string> = new Function(
  'Date',
  `${codeOf('js').replace('export ', '')} return costsKey;`,
)(
  class extends Date {
    static override now() {
      return explorer().api.clock.now.getTime();
    }
  },
);

/** A platform that serves the page above, and the code of the guide. */
const platform = createServer(async (request, response) => {
  response.setHeader('Content-Type', 'text/html');
  if (request.url === '/costs-key') response.end(await costsKey('acme'));
  else
    response.end(
      request.url === '/guide' ? codeOf('html').replace('https://billing.example.com', explorer().api.url) : HOST,
    );
});
const EXACT = encodeURIComponent('group=resource_type&exact=1');
const HASTY =
  'const { setTimeout: later } = window; window.setTimeout = (run, ms) => later(run, ms === 10_000 ? 0 : ms);';

/** Two addresses of the platform: one that may embed the page, and one that may not. */
let allowed: string;
let stranger: string;
const explorer = useExplorer(async () => {
  allowed = await listening(platform);
  stranger = allowed.replace('127.0.0.1', 'localhost');
  return { frameAncestors: [allowed] };
});
beforeAll(() => {
  const { api, key } = explorer();
  Object.assign(process.env, { METERLINE_API_URL: api.url, METERLINE_API_KEY: key });
});
afterEach(() => {
  explorer().api.clock.now = NOW;
});
afterAll(() => void platform.close());

/** Creates a key, as the backend of a platform does. */
async function expiringKey(minutes: number): Promise<string> {
  const { clock, keys } = explorer().api;
  const expiresAt = new Date(clock.now.getTime() + minutes * 60_000);
  return (await keys.create({ account: 'acme', role: 'member', clientId: 'embedded', expiresAt }, clock.now)).key;
}

/** Opens a page of the platform that embeds ours. @param fragment the fragment of our address */
function embed(fragment: string, { origin = allowed, isHasty = false } = {}) {
  return open(`${origin}/?${new URLSearchParams({ page: `${explorer().api.url}/embed#${fragment}` })}`, isHasty);
}

async function open(url: string, isHasty = false) {
  // Shortens the ten seconds that the page waits for a key.
  const prepare = async (page: Page) => isHasty && page.addInitScript(HASTY);
  const { page } = await explorer().visit({ url, prepare });
  const element = await page.waitForSelector('iframe');
  const frame = await element.contentFrame();
  if (!frame) throw new Error('there is no frame');
  return { page, frame };
}

const keysUsed = async () => (await explorer().api.keys.listOf('acme', 'portal')).length;
const total = (frame: Frame) => frame.locator('tfoot').getByText('$75.015002000001').waitFor();
const expired = (frame: Frame) => frame.getByText('This view has expired').waitFor();

it('an allowed origin can embed the page, which then has no header and stores nothing', async () => {
  const key = await expiringKey(10);
  const { frame } = await embed(`key=${key}&view=${EXACT}&theme=dark`);
  await total(frame);
  expect(await frame.getByRole('banner').count()).toBe(0);
  expect(await frame.getByRole('button', { name: /Sign|theme|Refresh/ }).count()).toBe(0);
  expect(await frame.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe(DARK);
  expect(frame.url()).toBe(`${explorer().api.url}/embed?account=acme&exact=1#theme=dark`);
  const stored = await frame.evaluate(async () => ({
    stores: [localStorage.length, sessionStorage.length, document.cookie, (await indexedDB.databases()).length],
    address: JSON.stringify(history.state) + location.href,
  }));
  expect(stored.stores).toEqual([0, 0, '', 0]);
  expect(stored.address).not.toContain(key);
});

it('a page of another origin cannot embed the page', async () => {
  const { page, frame } = await embed(`key=${await expiringKey(10)}`, { origin: stranger });
  await page.waitForFunction(() => document.readyState === 'complete');
  await expect(frame.waitForURL(/^chrome-error:/)).resolves.toBeUndefined();
});

it('the code of the guide embeds the page, and provides another key after the first has expired', async () => {
  const { frame } = await open(`${allowed}/guide`);
  await frame.locator('tfoot').getByText('$75.02').waitFor();
  const used = await keysUsed();
  explorer().api.clock.now = new Date(NOW.getTime() + 16 * 60_000);
  await frame
    .getByRole('row', { name: /^support/ })
    .getByRole('link')
    .click();
  await frame.locator('tfoot').getByText('$40.00').waitFor();
  expect(await keysUsed()).toBe(used + 1);
});

it('a page without a key accepts a key only from an allowed parent page', async () => {
  const { page, frame } = await embed(`view=${EXACT}`, { isHasty: true });
  await expired(frame);
  const key = await expiringKey(10);
  const given = { type: 'meterline:key', key };
  await frame.evaluate((message) => window.postMessage(message, '*'), given);
  await page.route('**/page-settings.json', (route) => route.fulfill({ json: { frameAncestors: [stranger] } }));
  const settingsRead = page.waitForResponse('**/page-settings.json');
  const give = () => page.evaluate((message) => window.frames[0]?.postMessage(message, '*'), given);
  await give();
  await (await settingsRead).finished();
  await expired(frame);
  await page.unroute('**/page-settings.json');
  await give();
  await total(frame);
});

it('without a parent page, the page shows that it has expired until its address has another key', async () => {
  const { page } = await explorer().visit({ path: `embed?v=123#key=mlk_unknown` });
  await page.getByText('This view has expired').waitFor();
  expect(page.url()).toBe(`${explorer().api.url}/embed?v=123`);
  // Only the fragment changes, so the browser does not load the page.
  await page.goto(`${explorer().api.url}/embed?v=123#key=${await expiringKey(10)}`);
  await page.locator('tfoot').getByText('$75.02').waitFor();
  expect(page.url()).toBe(`${explorer().api.url}/embed?v=123&account=acme`);
  expect(await page.getByText('does not know').count()).toBe(0);
});

it('the page formats numbers and dates in the locale of its address, and uses the theme of the system by default', async () => {
  const { frame } = await embed(`key=${await expiringKey(10)}&view=${EXACT}&locale=de`);
  await frame.locator('tfoot').getByText('$75,015002000001').waitFor();
  await frame.getByText('17. Okt. – 15. Nov. 2025').first().waitFor();
  expect(await frame.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe(LIGHT);
});
