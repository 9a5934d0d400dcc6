/** What the page shows when there are no figures: none exist, none are allowed, or none can be read. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type RunningServer, startServer } from '@meterline/api';
import { createTokenVerifier } from '@meterline/api/tokens';
import { insertUsageEvents } from '@meterline/warehouse';
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, SignJWT } from 'jose';
import { pino } from 'pino';
import type { Browser, BrowserContext, Page, Route } from 'playwright-core';
import { NOW, type TestApi } from '../contract/fixture.js';
import { openPipeline, type Pipeline } from '../e2e/pipeline.js';
import { type HttpProcess, killServices, type ServiceProcess, startCollector, startIngest } from '../services.js';
import { ACME } from './acme.js';
import {
  chooseOption,
  closePages,
  launchBrowser,
  newContext,
  showView,
  startPage,
  tableRows,
  viewOf,
  visit,
} from './browser.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const METRICS = /\/v0\/accounts\/[^/]+\/metrics\?/;
const TOKENS = { issuer: 'https://auth.example.com/', audience: 'meterline' };

let pipeline: Pipeline;
let api: TestApi;
let jwks: RunningServer;
let signer: GenerateKeyPairResult;
/** Needed by the last test alone, and slow to start: it starts while the others run. */
let ingest: Promise<ServiceProcess>;
let collector: HttpProcess;
let browser: Browser;
let context: BrowserContext;
let key: string;
/** Signed in with the key. */
let explorer: Page;

beforeAll(async () => {
  signer = await generateKeyPair('RS256');
  const published = { keys: [{ ...(await exportJWK(signer.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }] };
  const log = pino({ level: 'silent' });
  jwks = await startServer((_request, response) => response.end(JSON.stringify(published)), { port: 0, log });
  const jwksUrl = `http://127.0.0.1:${jwks.port}/jwks.json`;
  [pipeline, browser] = await Promise.all([openPipeline(), launchBrowser()]);
  ingest = startIngest(pipeline.env);
  // Its test fails with the reason; until then nobody waits for it.
  ingest.catch(() => undefined);
  collector = await startCollector(pipeline.env);
  api = await startPage({
    collectorUrl: collector.url,
    warehouse: pipeline.warehouse,
    tokens: createTokenVerifier({ jwksUrl, ...TOKENS, keptMs: 60_000, clock: () => NOW, log }),
  });
  await insertUsageEvents(pipeline.warehouse, ACME);
  key = await api.key('acme');
  context = await newContext(browser);
  explorer = (await visit(context, api.url, { key, view: 'account=acme' })).page;
});
afterEach(async () => {
  await context.setOffline(false);
  await closePages(context, explorer);
});
afterAll(async () => {
  await browser?.close();
  await killServices();
  await api?.stop();
  await pipeline?.close();
  await jwks?.close(0);
});

/** A view in the shared page; with another key, or for answers that must not be cached, in a page of its own. */
async function open(view = 'account=acme', as?: string): Promise<Page> {
  if (as !== undefined) return (await visit(context, api.url, { key: as, view })).page;
  await showView(explorer, view);
  return explorer;
}
const heading = (page: Page, name: string) => page.getByRole('heading', { name }).waitFor();

function token(accounts: Record<string, string>, scope = 'admin'): Promise<string> {
  const seconds = Math.floor(NOW.getTime() / 1000);
  return new SignJWT({ sub: 'ann', scope, accounts, iss: TOKENS.issuer, aud: TOKENS.audience, exp: seconds + 600 })
    .setProtectedHeader({ alg: 'RS256', kid: 'one' })
    .sign(signer.privateKey);
}

/** Keeps the text of every banner that the page ever shows: a test that is slow to look misses none. */
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

/** What a proxy in front of the service may answer. */
function refuse(status: number, error: string, headers: Record<string, string> = {}) {
  const body = { code: status, error, message: `It is ${error}.`, requestId: 'request-7' };
  return (route: Route) => route.fulfill({ status, headers, json: body });
}

describe('credentials', () => {
  it('that are wrong are refused where they were entered', async () => {
    // Where nobody is signed in: a tab that is would hand over its key.
    const guest = await newContext(browser);
    const { page } = await visit(guest, api.url);
    const field = page.getByLabel('API key or access token');
    for (const wrong of ['mlk_0123456789abcdef01234567_wrong', 'kein Schlüssel']) {
      await field.fill(wrong);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('alert').waitFor();
      expect(await field.getAttribute('aria-invalid')).toBe('true');
      await field.fill('');
    }
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Paste an API key or a token.').waitFor();
    await guest.close();
  });

  it('that are revoked lead back to the sign-in, and the view is kept', async () => {
    const doomed = await api.key('acme', 'admin', 'doomed');
    const page = await open('account=acme&group=resource_name', doomed);
    await tableRows(page);
    await api.keys.revoke(doomed.split('_')[1] ?? '', NOW);
    await page.getByRole('button', { name: /^Refresh/ }).click();
    await page.getByText('Your key or token is no longer valid').waitFor();
    await page.getByLabel('API key or access token').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('columnheader', { name: 'Resource', exact: true }).waitFor();
    expect(viewOf(page)).toEqual({ account: 'acme', group: 'resource_name' });
  });

  it('of several accounts can be changed between them', async () => {
    const page = await open('account=acme', await token({ acme: 'admin', globex: 'member' }));
    await tableRows(page);
    await page.getByRole('button', { name: 'Account acme' }).click();
    await page.getByRole('option', { name: 'globex' }).click();
    await heading(page, 'Send the first event');
    expect(viewOf(page)).toEqual({ account: 'globex' });
  });

  it('of no account get a message that says so', async () => {
    await heading(await open('', await token({})), 'You belong to no account');
  });

  it('without the scope get a message that names it', async () => {
    const page = await open('account=acme', await token({ acme: 'admin' }, 'jobs:list'));
    await heading(page, 'This token may not read billing data');
    await page.getByText('The token lacks the scope admin').waitFor();
  });
});

describe('what is not allowed', () => {
  it('is explained to a member, before and after, with a way on', async () => {
    const page = await open('account=acme&group=workspace', await api.key('acme', 'member'));
    await heading(page, 'Workspaces are for admins');
    await page.getByRole('button', { name: /^Filters/ }).click();
    await page.getByRole('button', { name: 'Workspace All' }).click();
    await page.getByRole('dialog').getByText('Only an admin of the account sees its workspaces').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /^Group by/ }).click();
    const workspace = page.getByRole('option', { name: 'Workspace' });
    expect(await workspace.getAttribute('aria-disabled')).toBe('true');
    expect(await workspace.textContent()).toContain('Only an admin');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Show the account as a whole' }).click();
    await expect(tableRows(page)).resolves.toHaveLength(5);
  });

  it('is the account of somebody else', async () => {
    const page = await open('account=initech');
    await heading(page, 'You have no access to initech');
    await page.getByText(/^Request [\w-]+: quote it when you ask for help\.$/).waitFor();
  });
});

describe('a failure', () => {
  it('of too many requests is waited for, and then the page continues', async () => {
    const prepare = async (page: Page) => {
      await page.route(METRICS, refuse(429, 'too_many_requests', { 'retry-after': '2' }), { times: 1 });
      await recordBanners(page);
    };
    const { page } = await visit(context, api.url, { key, view: 'account=acme', prepare });
    await expect(tableRows(page)).resolves.toHaveLength(5);
    expect(await recordedBanners(page)).toContain('Too many requests: the service asks to wait. Trying again in 2 s.');
  });

  it('of the service is shown with its request, and can be tried again', async () => {
    const page = await open('account=acme&group=none', key);
    await tableRows(page);
    await page.route(METRICS, refuse(500, 'internal_error'));
    await page.getByRole('button', { name: /^Group by/ }).click();
    await page.getByRole('option', { name: 'Resource type' }).click();
    await heading(page, 'The service has a problem');
    await page.getByText('request-7').waitFor();
    await page.unroute(METRICS);
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect(tableRows(page)).resolves.toHaveLength(5);
  });

  it('of the comparison alone leaves the rest as it is', async () => {
    const page = await open('account=acme');
    await tableRows(page);
    await page.route(/startTime=2025-09-12/, refuse(500, 'internal_error'));
    await chooseOption(page, 'Compare with', 'The period before');
    await page.getByText('The period before cannot be read: It is internal_error.').waitFor();
    await expect(tableRows(page)).resolves.toHaveLength(5);
    await page.unroute(/startTime=2025-09-12/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('columnheader', { name: '5 weeks earlier' }).waitFor();
  });

  it('of the network keeps what is shown, and ends by itself', async () => {
    const page = await open('account=acme');
    await tableRows(page);
    await context.setOffline(true);
    await page.getByText('You are offline.').waitFor();
    await page.getByRole('link', { name: 'Job' }).click();
    await page.getByText('Type: Job').waitFor();
    await expect(page.getByRole('row', { name: /^Agent/ }).isVisible()).resolves.toBe(true);
    await context.setOffline(false);
    await page.getByRole('link', { name: 'nightly' }).waitFor();
    await expect(page.getByText('You are offline.').count()).resolves.toBe(0);
  });
});

describe('nothing to show', () => {
  it('because of the filters leads to what there is', async () => {
    const page = await open('account=acme&name=nobody');
    await heading(page, 'Nothing matches these filters');
    await page.getByRole('main').getByRole('button', { name: 'Clear filters' }).last().click();
    await expect(tableRows(page)).resolves.toHaveLength(5);
  });

  it('in this period leads to the last month with usage', async () => {
    const page = await open('account=acme&from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z');
    await page.getByRole('button', { name: 'Show November 2025' }).click();
    await expect(tableRows(page)).resolves.toHaveLength(5);
  });

  it('in a new account shows commands that make a key and send the first event, and work', async () => {
    await ingest;
    const fresh = await api.key("o'hara & söhne");
    const { page } = await visit(context, api.url, { key: fresh, now: 'real' });
    await heading(page, 'Send the first event');
    await page.getByText('A runtime in Node').waitFor();
    const [keyCommand = '', sendCommand = '', code] = await page.locator('pre').allTextContents();
    expect(code).toContain(`openEmitter({ url: '${collector.url}', apiKey: process.env.KEY })`);
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, REDIS_URL: pipeline.env['REDIS_URL'] };
    const shell = (command: string, variables: object = {}) =>
      promisify(execFile)('bash', ['-c', command], { cwd: ROOT, env: { ...env, ...variables } });
    const { key: KEY } = JSON.parse((await shell(`${keyCommand} --json`)).stdout);
    expect(JSON.parse((await shell(sendCommand, { KEY })).stdout)).toMatchObject({ accepted: 1 });
    // 120 GB-seconds of a sandbox, in the example price book.
    const cost = page.getByRole('row', { name: 'Total of all groups $0.0014' });
    // Nobody has to ask for it.
    await cost.waitFor({ timeout: 30_000 });
    expect(await tableRows(page)).toEqual([['Sandbox', '$0.0014', '100.0%']]);
  });
});
