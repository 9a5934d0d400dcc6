/** How the web page is served. That it works is shown in test/browser. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { errorBody, errorOf, PAGE_POLICY, startApi, type TestApi } from '../harness/api.js';
import { PAGE_FOLDER } from '../harness/programs.js';
import { sendBytes } from './raw-http.js';

/** The largest size of all JavaScript together, compressed, in bytes. */
const MOST_JAVASCRIPT = 250_000;
/** Origins whose pages may embed the page. */
const EMBEDDING = ['https://app.example.com', 'https://app.example.org'];

let api: TestApi;
let assets: readonly string[];

beforeAll(async () => {
  api = await startApi({
    pageFolder: PAGE_FOLDER,
    collectorUrl: 'https://collector.example.com',
    frameAncestors: EMBEDDING,
  });
  assets = await readdir(`${PAGE_FOLDER}/assets`);
});
afterAll(() => api.stop());

/** Fetches a path, but not through `api.request`, which compares every response with the OpenAPI document: the page is not in it. */
const get = (path: string, encoding = 'br, gzip') =>
  fetch(`${api.url}${path}`, { headers: { 'accept-encoding': encoding } });
const ofKind = (extension: string) => assets.filter((name) => name.endsWith(extension));

it('the page is at /, asked for again each time, under a strict policy', async () => {
  const response = await get('/');
  const { status, headers } = response;
  const text = await response.text();
  expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
    200,
    'text/html; charset=utf-8',
    'no-cache',
  ]);
  expect(text).toContain('<div id="root">');
  expect(text).not.toMatch(/ style=|<style|<script(?![^>]* src=)/);
  expect(headers.get('content-security-policy')).toBe(PAGE_POLICY);
});

const ancestors = (headers: Headers) => headers.get('content-security-policy')?.split('; ').at(-1);

it('the page at /embed is the same one, which only the pages of the origins that are listed may embed', async () => {
  const [page, embedded, docs] = [await get('/'), await get('/embed'), await get('/docs')];
  expect([embedded.status, await embedded.text()]).toEqual([200, await page.text()]);
  expect(ancestors(page.headers)).toBe("frame-ancestors 'none'");
  expect(ancestors(embedded.headers)).toBe(`frame-ancestors ${EMBEDDING.join(' ')}`);
  const frameOptions = [page, embedded, docs].map(({ headers }) => headers.get('x-frame-options'));
  expect(frameOptions).toEqual(['SAMEORIGIN', null, 'SAMEORIGIN']);
});

it('the page at /embed may be embedded by no other page while no origin is listed', async () => {
  const { url, stop } = await startApi({ pageFolder: PAGE_FOLDER, warehouse: api.dependencies.warehouse });
  const { headers } = await fetch(`${url}/embed`);
  await stop();
  expect([ancestors(headers), headers.get('x-frame-options')]).toEqual(["frame-ancestors 'none'", 'SAMEORIGIN']);
});

it('a page that has not changed is not sent again', async () => {
  const { headers } = await get('/');
  // As a browser does at a reload; without it, fetch would add no-cache, which asks for the whole.
  const since = { 'if-modified-since': headers.get('last-modified') ?? '', 'cache-control': 'max-age=0' };
  expect((await fetch(api.url, { headers: since })).status).toBe(304);
});

it('the page has files that are kept for ever, and compressed', async () => {
  for (const name of [...ofKind('.js'), ...ofKind('.css')]) {
    for (const encoding of ['br', 'gzip']) {
      const { status, headers } = await get(`/assets/${name}`, encoding);
      // Below a kilobyte it is not worth it.
      const isSmall = (await stat(`${PAGE_FOLDER}/assets/${name}`)).size < 1024;
      expect([status, headers.get('content-encoding')]).toEqual([200, isSmall ? null : encoding]);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(name).toMatch(/-[\w-]{8}\.\w+$/);
    }
  }
});

it('the page has less than 250 kB of JavaScript, with what loads on demand', async () => {
  const sizes = ofKind('.js').map(async (name) => gzipSync(await readFile(`${PAGE_FOLDER}/assets/${name}`)).length);
  const total = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  expect(total).toBeGreaterThan(50_000);
  expect(total).toBeLessThan(MOST_JAVASCRIPT);
});

// The paths are not sent through fetch, which would resolve the dots.
it.each([
  ...['/assets/nothing.js', '/assets/', '/assets', '/assets/..%2Findex.html', '/index.html', '/page', '/assets/.x'],
  ...['/assets/.', '/assets/..', '/assets/%2e', '/assets/%2e%2e', '/assets/%00', '/assets/x%00.js', '/assets/%2F'],
])('the path %s is no part of the page, and 404 like any unknown path', async (path) => {
  const request = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  const { status, body } = await sendBytes(api.url, request, { keepsOpen: true });
  expect([status, errorBody.parse(body).error]).toEqual([404, 'not_found']);
});

it('the page is sent whole when a part is asked for', async () => {
  const [name] = ofKind('.js');
  for (const range of ['bytes=0-9', 'bytes=99999999-']) {
    const response = await fetch(`${api.url}/assets/${name}`, { headers: { range, 'accept-encoding': 'identity' } });
    expect([response.status, (await response.text()).length > 10]).toEqual([200, true]);
  }
});

it('the page is told where the collector is, and who may embed it', async () => {
  const response = await api.request('/page-settings.json');
  expect([response.status, response.body]).toEqual([
    200,
    { collectorUrl: 'https://collector.example.com', frameAncestors: EMBEDDING },
  ]);
  expect(response.headers.get('cache-control')).toBe('no-cache');
});

it('the page is 412 to a condition that does not hold', async () => {
  for (const path of ['/', `/assets/${ofKind('.js')[0]}`]) {
    const headers = { 'if-match': '"another"' };
    const response = await api.request(path, { headers });
    expect([response.status, errorOf(response).error]).toEqual([412, 'precondition_failed']);
    expect(response.headers.get('cache-control')).toBe('private, no-store');
  }
});

it.each(['/', '/embed', '/assets/nothing.js', '/docs', '/openapi.json'])(
  'the page at %s is only for reading',
  async (path) => {
    const response = await api.request(path, { method: 'POST' });
    expect([response.status, errorOf(response).error]).toEqual([405, 'method_not_allowed']);
    expect(response.headers.get('allow')).toBe('GET, HEAD');
  },
);
