/**
 * HTTP itself: methods, limits, broken requests, headers, the request log, cross-origin requests, and how the web page is served. What the page
 * does is in test/browser.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startServer, type TrustProxy } from '@meterline/api';
import { createApp } from '@meterline/query';
import { bearer, DAY, errorBody, errorOf, metricsPath, PAGE_POLICY, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { PAGE_FOLDER } from '../harness/programs.js';
import { resetAfter, sendBytes } from './raw-http.js';

const APP = 'https://app.example.com';
const FOREIGN = 'https://evil.example.com';

/** Origins whose pages may embed the page. */
const EMBEDDING = ['https://app.example.com', 'https://app.example.org'];

let api: TestApi;
/** An API without origins. */
let closed: TestApi;
let key: string;

beforeAll(async () => {
  const collectorUrl = 'https://collector.example.com';
  api = await startApi({ corsOrigins: [APP], pageFolder: PAGE_FOLDER, collectorUrl, frameAncestors: EMBEDDING });
  closed = await startApi({ pageFolder: PAGE_FOLDER, warehouse: api.dependencies.warehouse });
  key = await api.key('acme');
  await api.seed([event({ workspace: 'main', cost: '1' }), event({ workspace: 'other', cost: '2' })]);
});
afterAll(async () => {
  await closed.stop();
  await api.stop();
});

const METRICS = metricsPath('acme', DAY);
const withHeaders = (headers: Record<string, string>) => api.request(METRICS, { headers });
const asAdmin = (headers: Record<string, string>) => withHeaders({ ...bearer(key).headers, ...headers });
/** Both read until the server closes the connection. The first half-closes the socket after the request. */
const sendRaw = (text: string) => sendBytes(api.url, text);
const sendOpen = (line: string, headers = '', url = api.url) =>
  sendBytes(url, `${line} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`, { keepsOpen: true });

it.each(['/healthz', '/readyz', '/openapi.json', '/docs', '/v0/accounts', METRICS])(
  'HEAD of %s responds like GET, without the body',
  async (path) => {
    const [get, head] = [
      await api.request(path, bearer(key)),
      await api.request(path, { method: 'HEAD', ...bearer(key) }),
    ];
    expect([get.status, head.status, head.text]).toEqual([200, 200, '']);
    expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'));
  },
);

const ofLength = (length: number) => `/v0/accounts?${'a'.repeat(length - '/v0/accounts?'.length)}`;

it('a URL of 24 KiB is accepted, a longer one is 414', async () => {
  expect((await api.request(ofLength(24_576))).status).toBe(401);
  const response = await api.request(ofLength(24_577));
  expect([response.status, errorOf(response).error]).toEqual([414, 'url_too_long']);
});

it.each(['content-length', 'chunked'])('a body of 16 KiB is ignored, a longer one is 413 (%s)', async (framing) => {
  const post = (size: number) => {
    const bytes = new Uint8Array(size);
    const body = framing === 'chunked' ? new Blob([bytes]).stream() : bytes;
    return api.request('/v0/accounts', { method: 'POST', body, ...(framing === 'chunked' && { duplex: 'half' }) });
  };
  expect((await post(16_384)).status).toBe(405);
  const response = await post(16_385);
  expect([response.status, errorOf(response).error]).toEqual([413, 'body_too_large']);
});

/** Serves the same API with other settings, and the same log. */
async function servingWith(trustProxy: TrustProxy, requestTimeoutMs: number, work: (url: string) => Promise<void>) {
  const { dependencies } = api;
  const options = { port: 0, log: dependencies.log, requestTimeoutMs };
  const server = await startServer(createApp({ ...dependencies, trustProxy }), options);
  await work(`http://127.0.0.1:${server.port}`).finally(() => server.close(0));
}

it('a request that does not arrive in time is 408', async () => {
  await servingWith(false, 50, async (url) => {
    const { status, body } = await sendBytes(url, 'GET /healthz HTTP/1.1\r\nHost: x\r\n', { keepsOpen: true });
    const { error: code, requestId } = errorBody.parse(body);
    expect([status, code]).toEqual([408, 'request_timeout']);
    expect(api.log).toContainEqual(expect.objectContaining({ event: 'request_unreadable', requestId, status, code }));
  });
});

it.each([
  ['unknown parameters', (index: number) => `${String.fromCharCode(97 + (index % 26))}${index}`],
  ['characters that JSON escapes', (index: number) => `%00${index}=%01`],
  ['repeated parameters', (index: number) => `limit=${index}`],
])('a response to a request with many %s is not many times the size of the request', async (_what, problem) => {
  for (const count of [1, 10, 100, 1_500]) {
    const query = Array.from({ length: count }, (_, index) => problem(index)).join('&');
    const { status, text } = await api.request(metricsPath('acme', query), bearer(key));
    expect(status).toBe(400);
    // 200: the path, Host and the credentials of the shortest request.
    expect(text.length).toBeLessThan(Math.min(20 * (query.length + 200), 8_000));
  }
});

it('CONNECT is 405, and a client that resets the connection during CONNECT does no harm', async () => {
  const connect = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n';
  const { status, body } = await sendRaw(connect);
  const { error, message } = errorBody.parse(body);
  expect([status, error]).toEqual([405, 'method_not_allowed']);
  expect(message).toContain('GET, HEAD, POST, PATCH, DELETE');
  for (let times = 0; times < 20; times += 1) await resetAfter(api.url, connect);
  expect((await api.request('/healthz')).status).toBe(200);
});

const get = (target: string, headers = 'Host: x') =>
  `GET ${target} HTTP/1.1\r\n${headers}\r\nConnection: close\r\n\r\n`;
const post = (headers: string, body: string) => `POST /v0/accounts HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${body}`;

it.each([
  ['a target with %zz', get('/v0/accounts/%zz/metrics'), '400 malformed_url'],
  ['a target with %ff', get('/v0/accounts/%ff/metrics'), '400 malformed_url'],
  ['a target that ends with %', get('/v0/accounts?%'), '400 malformed_url'],
  ['a target that is not ASCII', get('/caf\xe9'), '400 malformed_request'],
  ['no HTTP at all', 'hello\r\n\r\n', '400 malformed_request'],
  ['no Host', get('/healthz', 'X: y'), '400 malformed_request'],
  ['two Hosts', get('/healthz', 'Host: x\r\nHost: y'), '400 malformed_request'],
  ['the same Host twice', get('/healthz', 'Host: x\r\nHost: x'), '400 malformed_request'],
  ['a broken header', get('/healthz', 'Host: x\r\nbad header'), '400 malformed_request'],
  ['two lengths', get('/healthz', 'Host: x\r\nContent-Length: 1\r\nContent-Length: 2'), '400 malformed_request'],
  ['an unknown method without a version', 'FOO /healthz\r\n\r\n', '400 malformed_request'],
  ['a broken chunk', post('Transfer-Encoding: chunked', 'zz\r\n'), '400 malformed_request'],
  ['CONNECT without a host', 'CONNECT / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', '405 method_not_allowed'],
  ['a body in an encoding', post('Content-Encoding: gzip\r\nContent-Length: 1', 'x'), '415 invalid_body'],
  ['an expectation that cannot be met', get('/v0/accounts', 'Host: x\r\nExpect: foo'), '417 expectation_failed'],
  ['headers over 48 KiB', get('/', `Host: x\r\nx-large: ${'a'.repeat(50_000)}`), '431 headers_too_large'],
  ['a method that HTTP does not have', 'FOO /v0/accounts HTTP/1.1\r\nHost: x\r\n\r\n', '501 method_unknown'],
])('%s gets an error, and the request log has the requestId of the response', async (_name, text, outcome) => {
  const { status, head, body } = await sendRaw(text);
  const { code, error, requestId } = errorBody.parse(body);
  expect([`${status} ${error}`, code]).toEqual([outcome, status]);
  expect(head).toContain(`X-Request-Id: ${requestId}`);
  expect(api.log).toContainEqual(expect.objectContaining({ requestId, status }));
});

it.each([
  ...['abc-123', '!', '~'.repeat(128)].map((id) => [id, 'taken'] as const),
  ...[undefined, '', 'two words', 'é', 'a'.repeat(129)].map((id) => [id, 'replaced'] as const),
])('the X-Request-Id %j is %s in an error and in any other response', async (sent, what) => {
  const headers = sent === undefined ? {} : { 'x-request-id': sent };
  const [error, other] = [await api.request('/v0/nope', { headers }), await asAdmin(headers)];
  for (const { headers } of [error, other]) {
    const id = headers.get('x-request-id');
    if (what === 'taken') expect(id).toBe(sent);
    else expect(id).toMatch(/^[0-9a-f-]{36}$/);
  }
  expect(errorOf(error).requestId).toBe(error.headers.get('x-request-id'));
});

it('the headers of a response keep account data out of caches and do not name the software', async () => {
  const { headers } = await api.request('/v0/accounts', bearer(key));
  expect(headers.get('cache-control')).toBe('private, no-store');
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  // It would bind all hosts of a domain: the proxy that ends TLS decides.
  expect(headers.get('strict-transport-security')).toBeNull();
  expect([headers.get('etag'), headers.get('x-powered-by'), headers.get('server')]).toEqual([null, null, null]);
});

it('a large response is compressed', async () => {
  const year = { startTime: '2025-01-01T00:00:00Z', endTime: '2025-03-01T00:00:00Z', resolution: 'daily' };
  const { headers } = await api.request(metricsPath('acme', year), bearer(key));
  expect(headers.get('content-encoding')).toMatch(/^(br|gzip|deflate)$/);
});

it('the request log has one line per request with caller, target and duration, and no secret', async () => {
  api.log.length = 0;
  const response = await api.request(metricsPath('acme', { ...DAY, cursor: 'secret-cursor' }), bearer(key));
  expect(api.log).toEqual([
    expect.objectContaining({
      level: 30,
      event: 'request',
      requestId: response.headers.get('x-request-id'),
      caller: 'admin of acme',
      account: 'acme',
      method: 'GET',
      path: '/v0/accounts/acme/metrics',
      remoteAddress: expect.stringMatching(/127\.0\.0\.1$/),
      status: 400,
      durationMs: expect.any(Number),
    }),
  ]);
  expect(JSON.stringify(api.log)).not.toMatch(/secret-cursor|mlk_/);
});

it('the lines of the request log have a maximum length, whatever the client sends', async () => {
  api.log.length = 0;
  await api.request(`/v0/accounts/${'a'.repeat(20_000)}/metrics`, bearer(key));
  await api.request(`/${'b'.repeat(20_000)}`);
  await api.request(`/v0/accounts?${'c'.repeat(20_000)}=`, bearer(key));
  expect(api.log).toHaveLength(3);
  for (const line of api.log) expect(JSON.stringify(line).length).toBeLessThan(2_500);
});

it.each<[string, TrustProxy, RegExp]>([
  ['is not believed', false, /127\.0\.0\.1$/],
  ['is believed up to the first of our proxies', 1, /^198\.51\.100\.7$/],
  ['is believed from a proxy at a known address', ['loopback'], /^198\.51\.100\.7$/],
  ['is not believed from anyone else', ['10.0.0.0/8'], /127\.0\.0\.1$/],
])('X-Forwarded-For %s in the request log', async (_when, trustProxy, expected) => {
  await servingWith(trustProxy, 60_000, async (url) => {
    api.log.length = 0;
    const headers = { 'x-forwarded-for': '203.0.113.9, 198.51.100.7', connection: 'close' };
    await (await fetch(`${url}/v0/accounts`, { headers })).text();
    expect(api.log).toEqual([expect.objectContaining({ remoteAddress: expect.stringMatching(expected) })]);
  });
});

it('the request log has health checks only at the level debug', async () => {
  api.log.length = 0;
  await api.request('/healthz');
  await api.request('/readyz');
  expect(api.log).toEqual(
    ['/healthz', '/readyz'].map((path) => expect.objectContaining({ level: 20, path, status: 200 })),
  );
});

it('a credential may be in either header or in both, with its scheme in any case', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    const [one, other] = [{ authorization: `${scheme} ${key}` }, { 'x-svc-authorization': `Bearer ${key}` }];
    for (const headers of [one, other, { ...one, ...other }]) expect((await withHeaders(headers)).status).toBe(200);
  }
});

it.each([
  ['Bearer other', 400],
  ['Bearer', 400],
  ['bearer two words', 400],
  // For another system, such as a proxy.
  ['Basic YTpi', 200],
  ['Digest username="x"', 200],
  ['x', 200],
  ['', 200],
])('the header %j beside one with a bearer token gets %d', async (other, status) => {
  for (const headers of [
    { authorization: `Bearer ${key}`, 'x-svc-authorization': other },
    { authorization: other, 'x-svc-authorization': `Bearer ${key}` },
  ]) {
    const response = await withHeaders(headers);
    expect(response.status).toBe(status);
    if (status === 400) expect(errorOf(response).error).toBe('conflicting_credentials');
  }
});

it.each(['Authorization', 'X-Svc-Authorization'])(
  'two different %s headers get a message of their own',
  async (name) => {
    const send = (other: string) =>
      sendOpen('GET /v0/accounts', [`Bearer ${key}`, other].map((value) => `${name}: ${value}\r\n`).join(''));
    for (const other of ['Bearer other', 'Basic YTpi']) {
      const { status, body } = await send(other);
      const { error, message } = errorBody.parse(body);
      expect([status, error]).toEqual([400, 'conflicting_credentials']);
      expect(message).toContain(`2 ${name} headers`);
    }
    expect((await send(`Bearer ${key}`)).status).toBe(200);
  },
);

it('X-Svc-Workspace does not filter billing: a member sees the account-wide aggregate', async () => {
  const member = await api.key('acme', 'member');
  const response = await withHeaders({ ...bearer(member).headers, 'x-svc-workspace': 'main' });
  expect(response.text).toContain('"totalCost":3');
});

it('Svc-Version is echoed, defaults to the earliest stable version, and changes no response of the Billing API', async () => {
  const earliest = await asAdmin({});
  expect([earliest.status, earliest.headers.get('svc-version')]).toEqual([200, '2026-04-16']);
  for (const version of ['2026-04-16', '2026-04-28']) {
    const { headers, text } = await asAdmin({ 'svc-version': version });
    expect([headers.get('svc-version'), text]).toEqual([version, earliest.text]);
  }
});

it('a web page of a listed origin may read responses, errors and the headers that it needs, and another origin nothing', async () => {
  const { headers } = await asAdmin({ origin: APP });
  expect(headers.get('access-control-allow-origin')).toBe(APP);
  expect(headers.get('access-control-expose-headers')).toBe(
    'Svc-Version,ETag,Location,Age,X-Request-Id,Retry-After,RateLimit,RateLimit-Policy,WWW-Authenticate',
  );
  const [own, foreign] = [await withHeaders({ origin: APP }), await withHeaders({ origin: FOREIGN })];
  expect([own.status, own.headers.get('access-control-allow-origin')]).toEqual([401, APP]);
  expect(foreign.headers.get('access-control-allow-origin')).toBeNull();
});

const preflight = (origin: string) => {
  const requested = { 'access-control-request-method': 'PATCH', 'access-control-request-headers': 'authorization' };
  return api.request(METRICS, { method: 'OPTIONS', headers: { origin, ...requested } });
};

it('a preflight allows a listed origin every method with credentials in a header, and another origin nothing', async () => {
  const { status, headers } = await preflight(APP);
  expect([status, headers.get('access-control-allow-origin')]).toEqual([204, APP]);
  expect(headers.get('access-control-allow-methods')?.split(',')).toEqual(['GET', 'POST', 'PATCH', 'DELETE']);
  expect(headers.get('access-control-allow-headers')).toBe('authorization');
  expect(headers.get('access-control-max-age')).toBe('600');
  expect((await preflight(FOREIGN)).headers.get('access-control-allow-origin')).toBeNull();
});

it('a preflight gets 405 like any other method if no origin is listed', async () => {
  const headers = { origin: APP, 'access-control-request-method': 'GET' };
  const response = await closed.request('/v0/accounts', { method: 'OPTIONS', headers });
  expect([response.status, errorOf(response).error]).toEqual([405, 'method_not_allowed']);
  expect(response.headers.get('allow')).toBe('GET, HEAD');
  expect(response.headers.get('access-control-allow-origin')).toBeNull();
});

describe('the page', () => {
  /** The maximum size of all JavaScript together, compressed, in bytes. */
  const MOST_JAVASCRIPT = 250_000;
  let assets: readonly string[];
  beforeAll(async () => {
    assets = await readdir(`${PAGE_FOLDER}/assets`);
  });

  const load = (path: string, encoding = 'br, gzip') => api.request(path, { headers: { 'accept-encoding': encoding } });
  const ofKind = (extension: string) => assets.filter((name) => name.endsWith(extension));

  it('the page is at /, revalidated each time, under a strict policy', async () => {
    const { status, headers, text } = await load('/');
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

  it('the page at /embed is the same page, and only the listed origins may embed it', async () => {
    const [page, embedded, docs] = [await load('/'), await load('/embed'), await load('/docs')];
    expect([embedded.status, embedded.text]).toEqual([200, page.text]);
    expect(ancestors(page.headers)).toBe("frame-ancestors 'none'");
    expect(ancestors(embedded.headers)).toBe(`frame-ancestors ${EMBEDDING.join(' ')}`);
    const frameOptions = [page, embedded, docs].map(({ headers }) => headers.get('x-frame-options'));
    expect(frameOptions).toEqual(['SAMEORIGIN', null, 'SAMEORIGIN']);
  });

  it('the page at /embed may not be embedded if no origin is listed', async () => {
    const { headers } = await closed.request('/embed');
    expect([ancestors(headers), headers.get('x-frame-options')]).toEqual(["frame-ancestors 'none'", 'SAMEORIGIN']);
  });

  it('the page is not sent again if it has not changed', async () => {
    const { headers } = await load('/');
    // Like a reload in a browser. Without this header, fetch would add no-cache, which requests the whole page.
    const since = { 'if-modified-since': headers.get('last-modified') ?? '', 'cache-control': 'max-age=0' };
    expect((await api.request('/', { headers: since })).status).toBe(304);
  });

  it('the page has files that are compressed and cached forever', async () => {
    for (const name of [...ofKind('.js'), ...ofKind('.css')]) {
      for (const encoding of ['br', 'gzip']) {
        const { status, headers } = await load(`/assets/${name}`, encoding);
        // Files of less than a kilobyte are not compressed.
        const isSmall = (await stat(`${PAGE_FOLDER}/assets/${name}`)).size < 1024;
        expect([status, headers.get('content-encoding')]).toEqual([200, isSmall ? null : encoding]);
        expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
        expect(name).toMatch(/-[\w-]{8}\.\w+$/);
      }
    }
  });

  it('the page has less than 250 kB of JavaScript, including the parts that load on demand', async () => {
    const sizes = ofKind('.js').map(async (name) => gzipSync(await readFile(`${PAGE_FOLDER}/assets/${name}`)).length);
    const total = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    expect(total).toBeGreaterThan(50_000);
    expect(total).toBeLessThan(MOST_JAVASCRIPT);
  });

  // Not sent through fetch, which would resolve the dots.
  it.each([
    ...['/assets/nothing.js', '/assets/', '/assets', '/assets/..%2Findex.html', '/index.html', '/page', '/assets/.x'],
    ...['/assets/.', '/assets/..', '/assets/%2e', '/assets/%2e%2e', '/assets/%00', '/assets/x%00.js', '/assets/%2F'],
  ])('the path %s is not part of the page, and 404 like any unknown path', async (path) => {
    const request = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
    const { status, body } = await sendBytes(api.url, request, { keepsOpen: true });
    expect([status, errorBody.parse(body).error]).toEqual([404, 'not_found']);
  });

  it('the page is sent whole if a range is requested', async () => {
    const [name] = ofKind('.js');
    for (const range of ['bytes=0-9', 'bytes=99999999-']) {
      const headers = { range, 'accept-encoding': 'identity' };
      const { status, text } = await api.request(`/assets/${name}`, { headers });
      expect([status, text.length > 10]).toEqual([200, true]);
    }
  });

  it('the settings of the page have the URL of the collector and the origins that may embed the page', async () => {
    const response = await api.request('/page-settings.json');
    expect([response.status, response.body]).toEqual([
      200,
      { collectorUrl: 'https://collector.example.com', frameAncestors: EMBEDDING },
    ]);
    expect(response.headers.get('cache-control')).toBe('no-cache');
  });

  it('the page is 412 if a condition does not hold', async () => {
    for (const path of ['/', `/assets/${ofKind('.js')[0]}`]) {
      const headers = { 'if-match': '"another"' };
      const response = await api.request(path, { headers });
      expect([response.status, errorOf(response).error]).toEqual([412, 'precondition_failed']);
      expect(response.headers.get('cache-control')).toBe('private, no-store');
    }
  });

  it.each(['/', '/embed', '/assets/nothing.js', '/docs', '/openapi.json'])(
    'the page at %s is read-only',
    async (path) => {
      const response = await api.request(path, { method: 'POST' });
      expect([response.status, errorOf(response).error]).toEqual([405, 'method_not_allowed']);
      expect(response.headers.get('allow')).toBe('GET, HEAD');
    },
  );
});
