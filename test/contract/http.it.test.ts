import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startServer, type TrustProxy } from '@meterline/api';
import { createApp } from '@meterline/query';
import { bearer, DAY, errorBody, errorOf, metricsPath, startApi, type TestApi } from '../harness/api.js';
import { resetAfter, sendBytes } from './raw-http.js';

const LONG = 20_000;

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
});
afterAll(() => api.stop());

const sendRaw = (text: string) => sendBytes(api.url, text);

it.each([
  '/healthz',
  '/readyz',
  '/openapi.json',
  '/docs',
  '/v0/accounts',
  metricsPath('acme', DAY),
  '/v0/accounts/acme/metrics/enums/group-by',
  '/v0/accounts/acme/metrics/enums/billing-dimensions',
  `/v0/accounts/acme/metrics/enums/resource-types?${new URLSearchParams(DAY)}`,
])('HEAD of %s answers as GET does, without the body', async (path) => {
  const [get, head] = [
    await api.request(path, bearer(key)),
    await api.request(path, { method: 'HEAD', ...bearer(key) }),
  ];
  expect([get.status, head.status, head.text]).toEqual([200, 200, '']);
  expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'));
});

describe('limits of HTTP', () => {
  const ofLength = (length: number) => `/v0/accounts?${'a'.repeat(length - '/v0/accounts?'.length)}`;

  it('a URL of 24 KiB is read, a longer one is 414', async () => {
    expect((await api.request(ofLength(24_576))).status).toBe(401);
    const answer = await api.request(ofLength(24_577));
    expect([answer.status, errorOf(answer).error]).toEqual([414, 'url_too_long']);
  });

  it('headers over 48 KiB are 431', async () => {
    const answer = await api.request('/v0/accounts', { headers: { 'x-large': 'a'.repeat(50_000) } });
    expect([answer.status, errorOf(answer).error]).toEqual([431, 'headers_too_large']);
  });

  it.each(['content-length', 'chunked'])('a body of 16 KiB is ignored, a longer one is 413 (%s)', async (framing) => {
    const post = (size: number) => {
      const bytes = new Uint8Array(size);
      const body = framing === 'chunked' ? new Blob([bytes]).stream() : bytes;
      return api.request('/v0/accounts', { method: 'POST', body, ...(framing === 'chunked' && { duplex: 'half' }) });
    };
    expect((await post(16_384)).status).toBe(405);
    const answer = await post(16_385);
    expect([answer.status, errorOf(answer).error]).toEqual([413, 'body_too_large']);
  });

  it('a body in an encoding is 415', async () => {
    const headers = { 'content-encoding': 'gzip' };
    const answer = await api.request('/v0/accounts', { method: 'POST', headers, body: 'x' });
    expect([answer.status, errorOf(answer).error]).toEqual([415, 'invalid_body']);
  });

  it('a request that does not arrive in time is 408', async () => {
    const { dependencies, log } = api;
    const impatient = { port: 0, log: dependencies.log, requestTimeoutMs: 50 };
    const server = await startServer(createApp(dependencies), impatient);
    try {
      const url = `http://127.0.0.1:${server.port}`;
      const { status, body } = await sendBytes(url, 'GET /healthz HTTP/1.1\r\nHost: x\r\n', { keepsOpen: true });
      const { error, requestId } = errorBody.parse(body);
      expect([status, error]).toEqual([408, 'request_timeout']);
      expect(log).toContainEqual(expect.objectContaining({ requestId, status: 408, code: 'request_timeout' }));
    } finally {
      await server.close(0);
    }
  });

  it('an expectation other than 100-continue is 417', async () => {
    const post = (expectation: string) =>
      sendRaw(`POST /v0/accounts HTTP/1.1\r\nHost: x\r\nExpect: ${expectation}\r\nConnection: close\r\n\r\n`);
    const { status, body } = await post('foo');
    const { code, error, requestId } = errorBody.parse(body);
    expect([status, code, error]).toEqual([417, 417, 'expectation_failed']);
    expect(api.log).toContainEqual(expect.objectContaining({ requestId, status: 417 }));
    expect((await post('100-Continue')).status).toBe(100);
  });

  it.each(['CONNECT / HTTP/1.1', 'CONNECT * HTTP/1.1'])('%s is rejected as any other method', async (line) => {
    const { status } = await sendRaw(`${line}\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
  });

  it.each([
    ...['/./', '/..', '//', '/%00', '/docs/%2e%2e', '/docs/..%2f..%2fpackage.json', '/docs/%5c', '/docs/a%00b'],
    ...[`/${'a'.repeat(LONG)}`, `/v0/accounts/${'b'.repeat(LONG)}/metrics`, `/v0/accounts?${'d=&'.repeat(LONG / 3)}`],
  ])('the target %.30s is rejected shortly whatever the conditions, ranges and ids beside it', async (target) => {
    const conditions = [
      '',
      'If-Match: "x"\r\n',
      'If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n',
      'Range: bytes=999999999-\r\n',
      'Range: bytes=5-1,x\r\n',
      `X-Request-Id: ${'f'.repeat(LONG)}\r\n`,
    ];
    for (const condition of conditions) {
      const { status, body } = await sendRaw(
        `GET ${target} HTTP/1.1\r\nHost: x\r\n${condition}Connection: close\r\n\r\n`,
      );
      expect([400, 401, 404]).toContain(status);
      expect(errorBody.parse(body).error).not.toBe('invalid_body');
      expect(JSON.stringify(body).length).toBeLessThan(2_048 + target.length);
    }
  });

  it('CONNECT is 405, and a client that hangs up in the middle of it does no harm', async () => {
    const connect = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n';
    const { status, body } = await sendRaw(connect);
    const { error, message, requestId } = errorBody.parse(body);
    expect([status, error]).toEqual([405, 'method_not_allowed']);
    expect(message).toContain('GET, HEAD, POST, DELETE');
    expect(api.log).toContainEqual(expect.objectContaining({ requestId, status: 405 }));
    for (let times = 0; times < 20; times += 1) await resetAfter(api.url, connect);
    expect((await api.request('/healthz')).status).toBe(200);
  });

  it('a method that HTTP does not have is 501', async () => {
    const { status, body } = await sendRaw('FOO /v0/accounts HTTP/1.1\r\nHost: x\r\n\r\n');
    const { code, error } = errorBody.parse(body);
    expect([status, code, error]).toEqual([501, 501, 'method_unknown']);
  });

  it.each(['/v0/accounts/%zz/metrics', '/v0/accounts/%ff/metrics', '/%', '/v0/accounts?%'])(
    'a request with %s is 400',
    async (target) => {
      const { status, body } = await sendRaw(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect([status, errorBody.parse(body).error]).toEqual([400, 'malformed_url']);
    },
  );

  it.each([
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['no Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['two Hosts', 'GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\nConnection: close\r\n\r\n'],
    ['the same Host twice', 'GET /healthz HTTP/1.1\r\nHost: x\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['an unknown method without a version', 'FOO /healthz\r\n\r\n'],
    ['a broken header', 'GET /healthz HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n'],
    ['two lengths', 'GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
    ['a broken chunk', 'POST /v0/accounts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
  ])('%s is 400', async (_name, text) => {
    const { status, body } = await sendRaw(text);
    const { code, error } = errorBody.parse(body);
    expect([status, code, error]).toEqual([400, 400, 'malformed_request']);
  });

  it('bytes that are not ASCII in the target are 400', async () => {
    const { status, body } = await sendRaw('GET /caf\xe9 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect([status, errorBody.parse(body).code]).toEqual([400, 400]);
  });
});

describe('X-Request-Id', () => {
  const idFor = async (sent?: string) => {
    const answer = await api.request('/v0/nope', sent === undefined ? {} : { headers: { 'x-request-id': sent } });
    expect(errorOf(answer).requestId).toBe(answer.headers.get('x-request-id'));
    return answer.headers.get('x-request-id');
  };

  it.each(['abc-123', '!', '~'.repeat(128)])('the X-Request-Id %j is taken', async (sent) => {
    expect(await idFor(sent)).toBe(sent);
  });

  it.each([undefined, '', 'two words', 'é', 'a'.repeat(129)])('the X-Request-Id %j is replaced', async (sent) => {
    expect(await idFor(sent)).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('X-Request-Id is on answers that are not errors', async () => {
    const headers = { authorization: `Bearer ${key}`, 'x-request-id': 'mine' };
    expect((await api.request('/v0/accounts', { headers })).headers.get('x-request-id')).toBe('mine');
  });
});

it('headers of an answer keep account data out of caches and do not name the software', async () => {
  const { headers } = await api.request('/v0/accounts', bearer(key));
  expect(headers.get('cache-control')).toBe('private, no-store');
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect([headers.get('etag'), headers.get('x-powered-by'), headers.get('server')]).toEqual([null, null, null]);
});

it('headers of metrics let only the client keep them, and ask each time whether they are the same', async () => {
  const { headers } = await api.request(metricsPath('acme', DAY), bearer(key));
  expect(headers.get('cache-control')).toBe('private, no-cache');
  expect(headers.get('etag')).not.toBeNull();
});

it('a large answer is compressed', async () => {
  const year = { startTime: '2025-01-01T00:00:00Z', endTime: '2025-03-01T00:00:00Z', resolution: 'daily' };
  const { headers } = await api.request(metricsPath('acme', year), bearer(key));
  expect(headers.get('content-encoding')).toMatch(/^(br|gzip|deflate)$/);
});

it('the request log has one line a request, with who, what and how long, and nothing secret', async () => {
  api.log.length = 0;
  const answer = await api.request(metricsPath('acme', { ...DAY, cursor: 'secret-cursor' }), bearer(key));
  expect(api.log).toEqual([
    expect.objectContaining({
      level: 30,
      event: 'request',
      requestId: answer.headers.get('x-request-id'),
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

it.each([
  [431, 'headers_too_large', `GET / HTTP/1.1\r\nHost: x\r\nx-large: ${'a'.repeat(50_000)}\r\n\r\n`],
  [400, 'malformed_request', 'hello\r\n\r\n'],
  [501, 'method_unknown', 'FOO / HTTP/1.1\r\nHost: x\r\n\r\n'],
])('the request log has the requestId of an answer %d to what is no request', async (status, code, text) => {
  api.log.length = 0;
  const { requestId } = errorBody.parse((await sendRaw(text)).body);
  expect(api.log).toEqual([expect.objectContaining({ event: 'request_unreadable', requestId, status, code })]);
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
