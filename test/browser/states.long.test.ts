/** Tests the page without data: empty accounts, missing permissions and failures. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from '@jest/globals';
import { createTokenVerifier, DEFAULT_ACCOUNT_CLAIMS } from '@meterline/api';
import { pino } from 'pino';
import type { Page, Route } from 'playwright-core';
import { AUDIENCE, ISSUER, startTokenIssuer, type TokenIssuer } from '../contract/callers.js';
import { NOW } from '../harness/api.js';
import { type Product, startProduct } from '../harness/product.js';
import type { HttpProcess, ServiceProcess } from '../harness/services.js';
import { choose, chooseOption, tableRows, useExplorer, viewOf } from './browser.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const METRICS = /\/v0\/accounts\/[^/]+\/metrics\?/;

let product: Product;
let issuer: TokenIssuer;
/** Only the last test needs this service. It starts slowly, so it starts while the other tests run. */
let ingest: Promise<ServiceProcess>;
let collector: HttpProcess;
const explorer = useExplorer(async () => {
  [product, issuer] = await Promise.all([startProduct(), startTokenIssuer()]);
  ingest = product.startIngest();
  // If the worker fails to start, the last test reports the reason.
  ingest.catch(() => undefined);
  collector = await product.startCollector();
  const { jwksUrl } = issuer;
  const log = pino({ level: 'silent' });
  const accountClaims = { ...DEFAULT_ACCOUNT_CLAIMS, platformRoles: ['roles'] };
  const identity = { jwksUrl, issuer: ISSUER, audience: AUDIENCE, accountClaims };
  const tokens = createTokenVerifier({ ...identity, clock: () => NOW, log });
  return { collectorUrl: collector.url, warehouse: product.warehouse, tokens };
});
afterAll(async () => {
  await product?.close();
  await issuer?.close();
});

/** Opens a view in the shared page or, with a key, in a new page. */
async function open(view = 'account=acme', key?: string): Promise<Page> {
  return key === undefined ? explorer().open(view) : (await explorer().visit({ key, view })).page;
}
const heading = (page: Page, name: string) => page.getByRole('heading', { name }).waitFor();

function token(accounts: Record<string, string>, scope = 'admin', roles: readonly string[] = []): Promise<string> {
  const seconds = Math.floor(NOW.getTime() / 1000);
  return issuer.sign({ sub: 'ann', scope, accounts, roles, iss: ISSUER, aud: AUDIENCE, exp: seconds + 600 });
}

/** Records the text of every banner, so that a slow test does not miss one. */
function recordBanners(page: Page): Promise<unknown> {
  return page.addInitScript(() => {
    const texts = new Set<string>();
    const record = () => {
      for (const { textContent } of document.querySelectorAll('.banner > span')) texts.add(textContent ?? '');
      sessionStorage.setItem('banners', JSON.stringify([...texts]));
    };
    new MutationObserver(record).observe(document, { subtree: true, childList: true, characterData: true });
  });
}

async function recordedBanners(page: Page): Promise<string[]> {
  return JSON.parse(await page.evaluate(() => sessionStorage.getItem('banners') ?? '[]'));
}

/** Returns a handler that responds with an error, like a proxy in front of the service. */
function failWith(status: number, error: string, headers: Record<string, string> = {}) {
  const body = { code: status, error, message: `It is ${error}.`, requestId: 'request-7' };
  return (route: Route) => route.fulfill({ status, headers, json: body });
}

it('wrong credentials have an error message in the sign-in form', async () => {
  const { page } = await explorer().visit({ guest: {} });
  const field = page.getByLabel('API key or access token');
  for (const wrong of ['mlk_0123456789abcdef01234567_wrong', 'kein Schlüssel']) {
    await field.fill(wrong);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    await field.fill('');
  }
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Enter an API key or access token.').waitFor();
});

const BLOCKED_SITE_DATA: Readonly<Record<string, () => void>> = {
  'blocks site data and has no channel between tabs': () => {
    const get = () => {
      throw new DOMException('Access is denied for this document.', 'SecurityError');
    };
    for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, { get });
    Reflect.deleteProperty(window, 'BroadcastChannel');
  },
  'has no room for site data': () => {
    Storage.prototype.setItem = () => {
      throw new DOMException('The quota has been exceeded.', 'QuotaExceededError');
    };
  },
};

it.each(Object.entries(BLOCKED_SITE_DATA))(
  'a browser that %s signs in until the page is closed',
  async (_what, block) => {
    const { page, offences } = await explorer().visit({ guest: {}, prepare: (opened) => opened.addInitScript(block) });
    await page.getByLabel('API key or access token').fill(explorer().key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(tableRows(page)).resolves.toHaveLength(5);
    await page.getByRole('button', { name: 'Use the dark theme' }).click();
    await page.getByRole('button', { name: 'Use the light theme' }).waitFor();
    await page.goto(`${explorer().api.url}/docs`);
    await page.locator('.opblock').first().waitFor();
    expect(offences).toEqual([]);
  },
);

it('an exception during rendering shows the error, a reload button and a link to the default view', async () => {
  const fail = () => {
    const get = () => {
      throw new RangeError('no such locale');
    };
    Object.defineProperty(Intl.NumberFormat.prototype, 'format', { get });
  };
  const { key } = explorer();
  const { page } = await explorer().visit({
    key,
    view: 'group=workspace',
    prepare: (opened) => opened.addInitScript(fail),
  });
  await heading(page, 'Something went wrong on this page');
  await page.getByText('RangeError: no such locale').waitFor();
  await page.getByRole('button', { name: 'Reload' }).waitFor();
  expect(await page.getByRole('link', { name: 'default view' }).getAttribute('href')).toBe('/');
});

it('a page with blocked scripts shows a message that it did not start', async () => {
  const prepare = (opened: Page) => opened.route('**/*.js', (route) => route.abort());
  const { page } = await explorer().visit({ prepare });
  await page.getByText('This page did not start. Reload it.').waitFor();
});

it('revoked credentials lead back to the sign-in form, and the view is kept', async () => {
  const { api, key } = explorer();
  const doomed = await api.key('acme', 'admin', 'doomed');
  const page = await open('account=acme&group=resource_name', doomed);
  await tableRows(page);
  await api.keys.revoke(doomed.split('_')[1] ?? '', NOW);
  await page.getByRole('button', { name: /^Refresh/ }).click();
  await page.getByText(/ Sign in again to return to your view\.$/).waitFor();
  await page.getByLabel('API key or access token').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('columnheader', { name: 'Resource', exact: true }).waitFor();
  expect(viewOf(page)).toEqual({ account: 'acme', group: 'resource_name' });
});

it('a user of several accounts can see each or all of them, without workspaces as a member of one', async () => {
  const page = await open('account=acme', await token({ acme: 'admin', globex: 'member' }));
  await tableRows(page);
  await choose(page, 'Account', 'globex');
  await heading(page, 'Send your first event');
  expect(viewOf(page)).toEqual({ account: 'globex' });
  await choose(page, 'Account', 'All accounts');
  await expect(tableRows(page)).resolves.toEqual([['acme', '$75.02', '100.0%']]);
  await page.getByRole('combobox', { name: 'Group by' }).click();
  const workspace = page.getByRole('option', { name: 'Workspace' });
  expect(await workspace.textContent()).toContain('you must be an admin of each of them');
});

it('an operator who is also the admin of an account starts with all accounts, and may set alerts in that account', async () => {
  await explorer().api.key('another');
  const page = await open('', await token({ acme: 'admin' }, 'admin', ['operator']));
  await heading(page, 'Cost by account');
  expect(viewOf(page)).toEqual({ accounts: 'all', group: 'account' });
  await choose(page, 'Account', 'acme');
  await page.getByRole('button', { name: 'Set an alert' }).waitFor();
  await choose(page, 'Account', 'another');
  await heading(page, 'Send your first event');
});

it('a token without an account or without the scope has an explanation', async () => {
  await heading(await open('', await token({})), 'You don’t have access to any account');
  const page = await open('account=acme', await token({ acme: 'admin' }, 'jobs:list'));
  await heading(page, 'This token cannot read billing data');
  await page.getByText('The token lacks the scope admin').waitFor();
});

it('a member sees why workspaces are unavailable, and a button to continue without them', async () => {
  const page = await open('account=acme&group=workspace', await explorer().api.key('acme', 'member'));
  await heading(page, 'Only admins can see workspaces');
  await page.getByRole('button', { name: /^Filters/ }).click();
  await page.getByRole('button', { name: 'Workspace All' }).click();
  await page.getByRole('dialog').getByText('Only admins of this account can break it down by workspace').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('combobox', { name: 'Group by' }).click();
  const workspace = page.getByRole('option', { name: 'Workspace' });
  expect(await workspace.getAttribute('aria-disabled')).toBe('true');
  expect(await workspace.textContent()).toContain('Only admins');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Show without workspaces' }).click();
  await expect(tableRows(page)).resolves.toHaveLength(5);
});

it('a foreign account has an explanation with the request ID', async () => {
  const page = await open('account=initech');
  await heading(page, 'You don’t have access to initech');
  await page.getByText(/^Request ID: [\w-]+\. Include it when you report this problem\.$/).waitFor();
});

it('an account that does not exist has an explanation and a way to all accounts', async () => {
  const page = await open('account=tenant-42', await explorer().api.key(undefined, 'operator'));
  await heading(page, 'There is no account tenant-42 yet');
  await page.getByRole('button', { name: 'Show all accounts' }).click();
  await heading(page, 'Cost by account');
  expect(viewOf(page)).toEqual({ accounts: 'all', group: 'account' });
});

it('an unknown parameter of a link is named until the view changes', async () => {
  const { page } = await explorer().visit({ key: explorer().key, view: 'period=month-to-date&group=workspace' });
  const banner = page.getByText(/“period=month-to-date” .* The period is Last 30 days\.$/);
  await banner.waitFor();
  // The address gets the account once the list of accounts is loaded.
  await page.waitForURL(/account=acme/);
  expect(viewOf(page)).toEqual({ account: 'acme', period: 'month-to-date', group: 'workspace' });
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await banner.waitFor({ state: 'detached' });
  expect(viewOf(page)).toEqual({ account: 'acme', group: 'workspace' });
});

it('after too many requests, the page waits and then continues', async () => {
  const prepare = async (page: Page) => {
    await page.route(METRICS, failWith(429, 'too_many_requests', { 'retry-after': '2' }), { times: 1 });
    await recordBanners(page);
  };
  const { page } = await explorer().visit({ key: explorer().key, view: 'account=acme', prepare });
  await expect(tableRows(page)).resolves.toHaveLength(5);
  expect(await recordedBanners(page)).toContain('Too many requests. Retrying in 2 s.');
});

it('the user can retry at once, however long the Retry-After of the service is', async () => {
  const prepare = (page: Page) =>
    page.route(METRICS, failWith(429, 'too_many_requests', { 'retry-after': '600' }), { times: 1 });
  const { page } = await explorer().visit({ key: explorer().key, view: 'account=acme', prepare });
  await page.getByRole('button', { name: 'Retry now' }).click();
  await expect(tableRows(page)).resolves.toHaveLength(5);
});

it.each([
  ['the network', (route: Route) => route.abort(), 'The service is unreachable.'],
  ['the service', failWith(500, 'internal_error'), 'The service returned an error (500, request ID request-7).'],
])('a failure of %s keeps the last data with its time, and is retried forever', async (_what, fail, problem) => {
  const page = await open('account=acme&group=resource_type', explorer().key);
  await tableRows(page);
  await page.route(METRICS, fail);
  // A minute later, the page sends another query, whose response is not in the cache.
  await page.evaluate(() => {
    const later = Date.now() + 60_000;
    Date.now = () => later;
  });
  await page.getByRole('button', { name: /^Refresh/ }).click();
  await page.getByText(`${problem} Showing data as of 12:00:00 UTC.`).waitFor();
  for (let failures = 1; failures < 8; failures += 1) {
    const requested = page.waitForEvent('request', (request) => METRICS.test(request.url()));
    await page.getByRole('button', { name: 'Retry now' }).click();
    await requested;
  }
  expect(await page.getByRole('row', { name: /^Agent/ }).isVisible()).toBe(true);
  await page.unroute(METRICS);
  await page.getByRole('button', { name: 'Retry now' }).click();
  await page.getByText(problem).waitFor({ state: 'detached' });
  await expect(tableRows(page)).resolves.toHaveLength(5);
});

it('a failure of the comparison leaves the rest of the page unchanged', async () => {
  const page = await open('account=acme');
  await tableRows(page);
  await page.route(/startTime=2025-09-12/, failWith(400, 'invalid_parameter'));
  await chooseOption(page, 'Compare with', 'Previous period');
  await page.getByText('The previous period could not be loaded: It is invalid_parameter.').waitFor();
  await expect(page.locator('.placeholder').count()).resolves.toBe(0);
  await expect(tableRows(page)).resolves.toHaveLength(5);
  await page.getByRole('cell', { name: 'not available' }).first().waitFor();
  await page.unroute(/startTime=2025-09-12/);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('columnheader', { name: '5 weeks earlier' }).waitFor();
});

it('an offline page keeps its data, and continues when the connection returns', async () => {
  const page = await open('account=acme');
  await tableRows(page);
  await page.context().setOffline(true);
  await page.getByText('You are offline.').waitFor();
  await page.getByRole('link', { name: 'Job' }).click();
  await page.getByText('Resource type: Job').waitFor();
  await expect(page.getByRole('row', { name: /^Agent/ }).isVisible()).resolves.toBe(true);
  await page.context().setOffline(false);
  await page.getByRole('link', { name: 'nightly' }).waitFor();
  await expect(page.getByText('You are offline.').count()).resolves.toBe(0);
});

it('filters without matches and a period without usage offer a view with usage', async () => {
  const page = await open('account=acme&name=nobody');
  await heading(page, 'No usage matches these filters');
  await page.getByRole('main').getByRole('button', { name: 'Clear filters' }).last().click();
  await expect(tableRows(page)).resolves.toHaveLength(5);
  await open('account=acme&from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z');
  await page.getByRole('button', { name: 'Show November 2025' }).click();
  await expect(tableRows(page)).resolves.toHaveLength(5);
});

it('a new account shows working commands that create a key and send the first event', async () => {
  await ingest;
  const { page } = await explorer().visit({ key: await explorer().api.key("o'hara & söhne"), now: 'real' });
  await heading(page, 'Send your first event');
  await page.getByText('In a Node program').waitFor();
  const [keyCommand = '', sendCommand = ''] = await page.locator('pre').allTextContents();
  // The commands do not change when the page checks again, because a user may be copying them.
  const shown = await page.locator('pre').first().elementHandle();
  for (let looks = 0; looks < 2; looks += 1) await page.waitForResponse(/metrics/);
  expect(await shown?.evaluate((command) => command.isConnected)).toBe(true);
  expect(await page.locator('pre').nth(1).textContent()).toBe(sendCommand);
  expect(sendCommand).toContain(`"${collector.url}/v0/events"`);
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, REDIS_URL: product.env['REDIS_URL'] };
  const shell = (command: string, variables: object = {}) =>
    promisify(execFile)('bash', ['-c', command], { cwd: ROOT, env: { ...env, ...variables } });
  const { key: KEY } = JSON.parse((await shell(`${keyCommand} --json`)).stdout);
  expect(JSON.parse((await shell(sendCommand, { KEY })).stdout)).toMatchObject({ accepted: 1 });
  // 120 GB-seconds of a sandbox, in the example price book.
  const cost = page.getByRole('row', { name: 'Total of all groups $0.0014' });
  // The page refreshes without a click.
  await cost.waitFor();
  expect(await tableRows(page)).toEqual([['Sandbox', '$0.0014', '100.0%']]);
});
