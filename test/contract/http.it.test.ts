/** What the API makes of HTTP itself: methods, limits, broken requests, the headers of a request and of its response, and the request log. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startServer, type TrustProxy } from '@meterline/api';
import { createApp } from '@meterline/query';
import { bearer, DAY, errorBody, errorOf, metricsPath, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { resetAfter, sendBytes } from './raw-http.js';

const APP = 'https://app.example.com';
const FOREIGN = 'https://evil.example.com';

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi({ corsOrigins: [APP] });
  key = await api.key('acme');
  await api.seed([event({ workspace: 'main', cost: '1' }), event({ workspace: 'other', cost: '2' })]);
});
afterAll(() => api.stop());

const METRICS = metricsPath('acme', DAY);
const withHeaders = (headers: Record<string, string>) => api.request(METRICS, { headers });
const asAdmin = (headers: Record<string, string>) => withHeaders({ ...bearer(key).headers, ...headers });
/** Until the server closes, with the socket open or half of it closed. */
const sendRaw = (text: string) => sendBytes(api.url, text);
const sendOpen = (line: string, headers = '', url = api.url) =>
  sendBytes(url, `${line} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`, { keepsOpen: true });

it.each(['/healthz', '/readyz', '/openapi.json', '/docs', '/v0/accounts', METRICS])(
  'HEAD of %s answers as GET does, without the body',
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

it('a URL of 24 KiB is read, a longer one is 414', async () => {
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

it('a request that does not arrive in time is 408', async () => {
  const { dependencies, log } = api;
  const server = await startServer(createApp(dependencies), { port: 0, log: dependencies.log, requestTimeoutMs: 50 });
  try {
    const url = `http://127.0.0.1:${server.port}`;
    const { status, body } = await sendBytes(url, 'GET /healthz HTTP/1.1\r\nHost: x\r\n', { keepsOpen: true });
    const { error, requestId } = errorBody.parse(body);
    expect([status, error]).toEqual([408, 'request_timeout']);
    expect(log).toContainEqual(
      expect.objectContaining({ event: 'request_unreadable', requestId, status, code: error }),
    );
  } finally {
    await server.close(0);
  }
});

it.each([
  ['unknown parameters', (index: number) => `${String.fromCharCode(97 + (index % 26))}${index}`],
  ['characters that JSON escapes', (index: number) => `%00${index}=%01`],
  ['repeated parameters', (index: number) => `limit=${index}`],
])('a request gets no response many times its size, however many %s it has', async (_what, problem) => {
  for (const count of [1, 10, 100, 1_500]) {
    const query = Array.from({ length: count }, (_, index) => problem(index)).join('&');
    const { status, text } = await api.request(metricsPath('acme', query), bearer(key));
    expect(status).toBe(400);
    // What the shortest request needs besides: the path, Host and the credentials.
    expect(text.length).toBeLessThan(Math.min(20 * (query.length + 200), 8_000));
  }
});

it('CONNECT is 405, and a client that hangs up in the middle of it does no harm', async () => {
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
])('%s is refused, and the request log has the requestId of the response', async (_name, text, outcome) => {
  const { status, head, body } = await sendRaw(text);
  const { code, error, requestId } = errorBody.parse(body);
  expect([`${status} ${error}`, code]).toEqual([outcome, status]);
  expect(head).toContain(`X-Request-Id: ${requestId}`);
  expect(api.log).toContainEqual(expect.objectContaining({ requestId, status }));
});

it.each([
  ...['abc-123', '!', '~'.repeat(128)].map((id) => [id, 'taken'] as const),
  ...[undefined, '', 'two words', 'é', 'a'.repeat(129)].map((id) => [id, 'replaced'] as const),
])('the X-Request-Id %j is %s, of an error and of any other response', async (sent, what) => {
  const headers = sent === undefined ? {} : { 'x-request-id': sent };
  const [error, other] = [await api.request('/v0/nope', { headers }), await asAdmin(headers)];
  for (const { headers } of [error, other]) {
    const id = headers.get('x-request-id');
    if (what === 'taken') expect(id).toBe(sent);
    else expect(id).toMatch(/^[0-9a-f-]{36}$/);
  }
  expect(errorOf(error).requestId).toBe(error.headers.get('x-request-id'));
});

it('headers of a response keep account data out of caches and do not name the software', async () => {
  const { headers } = await api.request('/v0/accounts', bearer(key));
  expect(headers.get('cache-control')).toBe('private, no-store');
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect([headers.get('etag'), headers.get('x-powered-by'), headers.get('server')]).toEqual([null, null, null]);
});

it('a large response is compressed', async () => {
  const year = { startTime: '2025-01-01T00:00:00Z', endTime: '2025-03-01T00:00:00Z', resolution: 'daily' };
  const { headers } = await api.request(metricsPath('acme', year), bearer(key));
  expect(headers.get('content-encoding')).toMatch(/^(br|gzip|deflate)$/);
});

it('the request log has one line a request, with who, what and how long, and nothing secret', async () => {
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

it('the request log has no line that grows with what the client sends', async () => {
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
  const { dependencies, log } = api;
  const server = await startServer(createApp({ ...dependencies, trustProxy }), { port: 0, log: dependencies.log });
  try {
    log.length = 0;
    const headers = { 'x-forwarded-for': '203.0.113.9, 198.51.100.7', connection: 'close' };
    await fetch(`http://127.0.0.1:${server.port}/v0/accounts`, { headers });
    expect(log).toEqual([expect.objectContaining({ remoteAddress: expect.stringMatching(expected) })]);
  } finally {
    await server.close(0);
  }
});

it('the request log has health checks at debug only', async () => {
  api.log.length = 0;
  await api.request('/healthz');
  await api.request('/readyz');
  expect(api.log).toEqual(
    ['/healthz', '/readyz'].map((path) => expect.objectContaining({ level: 20, path, status: 200 })),
  );
});

it('a credential may stand in either header or in both, and the case of its scheme does not matter', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    const [one, other] = [{ authorization: `${scheme} ${key}` }, { 'x-svc-authorization': `Bearer ${key}` }];
    for (const headers of [one, other, { ...one, ...other }]) expect((await withHeaders(headers)).status).toBe(200);
  }
});

it.each([
  ['Bearer other', 400],
  ['Bearer', 400],
  ['bearer two words', 400],
  // For something else, such as a proxy.
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

it.each(['Authorization', 'X-Svc-Authorization'])('two different %s have a message of their own', async (name) => {
  const send = (other: string) =>
    sendOpen('GET /v0/accounts', [`Bearer ${key}`, other].map((value) => `${name}: ${value}\r\n`).join(''));
  for (const other of ['Bearer other', 'Basic YTpi']) {
    const { status, body } = await send(other);
    const { error, message } = errorBody.parse(body);
    expect([status, error]).toEqual([400, 'conflicting_credentials']);
    expect(message).toContain(`2 ${name} headers`);
  }
  expect((await send(`Bearer ${key}`)).status).toBe(200);
});

it('X-Svc-Workspace does not filter billing: a member sees the account-wide aggregate', async () => {
  const member = await api.key('acme', 'member');
  const response = await withHeaders({ ...bearer(member).headers, 'x-svc-workspace': 'main' });
  expect(response.text).toContain('"totalCost":3');
});

it('Svc-Version is echoed, the earliest stable one when it is left out, and changes no response of the Billing API', async () => {
  const earliest = await asAdmin({});
  expect([earliest.status, earliest.headers.get('svc-version')]).toEqual([200, '2026-04-16']);
  for (const version of ['2026-04-16', '2026-04-28']) {
    const { headers, text } = await asAdmin({ 'svc-version': version });
    expect([headers.get('svc-version'), text]).toEqual([version, earliest.text]);
  }
});

it('a web page of a listed origin may read a response, and the headers that it needs', async () => {
  const { headers } = await asAdmin({ origin: APP });
  expect(headers.get('access-control-allow-origin')).toBe(APP);
  expect(headers.get('access-control-expose-headers')).toBe(
    'Svc-Version,ETag,Location,Age,X-Request-Id,Retry-After,RateLimit,RateLimit-Policy,WWW-Authenticate',
  );
});

it('a web page of a listed origin may read an error, and one of another origin nothing', async () => {
  const [own, foreign] = [await withHeaders({ origin: APP }), await withHeaders({ origin: FOREIGN })];
  expect([own.status, own.headers.get('access-control-allow-origin')]).toEqual([401, APP]);
  expect(foreign.headers.get('access-control-allow-origin')).toBeNull();
});

const preflight = (origin: string) => {
  const requested = { 'access-control-request-method': 'PATCH', 'access-control-request-headers': 'authorization' };
  return api.request(METRICS, { method: 'OPTIONS', headers: { origin, ...requested } });
};

it('a preflight allows every method with credentials in a header, and nothing to another origin', async () => {
  const { status, headers } = await preflight(APP);
  expect([status, headers.get('access-control-allow-origin')]).toEqual([204, APP]);
  expect(headers.get('access-control-allow-methods')?.split(',')).toEqual(['GET', 'POST', 'PATCH', 'DELETE']);
  expect(headers.get('access-control-allow-headers')).toBe('authorization');
  expect(headers.get('access-control-max-age')).toBe('600');
  expect((await preflight(FOREIGN)).headers.get('access-control-allow-origin')).toBeNull();
});

it('a preflight is a method like any other where no origin is listed', async () => {
  const closed = await startApi({ warehouse: api.dependencies.warehouse });
  try {
    const headers = { origin: APP, 'access-control-request-method': 'GET' };
    const response = await closed.request('/v0/accounts', { method: 'OPTIONS', headers });
    expect([response.status, errorOf(response).error]).toEqual([405, 'method_not_allowed']);
    expect(response.headers.get('allow')).toBe('GET, HEAD');
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  } finally {
    await closed.stop();
  }
});
