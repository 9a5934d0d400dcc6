import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { bearer, DAY, errorOf, metricsPath, startApi, type TestApi } from '../harness/api.js';

const APP = 'https://app.example.com';

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi({ corsOrigins: [APP] });
  key = await api.key('acme');
});
afterAll(() => api.stop());

const preflight = (origin: string, method: string) =>
  api.request(metricsPath('acme', DAY), {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': 'authorization' },
  });

it('a web page of a listed origin may read an answer, and the headers that it needs', async () => {
  const { headers } = await api.request(metricsPath('acme', DAY), {
    headers: { ...bearer(key).headers, origin: APP },
  });
  expect(headers.get('access-control-allow-origin')).toBe(APP);
  expect(headers.get('access-control-expose-headers')?.split(',')).toEqual([
    'Svc-Version',
    'ETag',
    'Age',
    'X-Request-Id',
    'Retry-After',
    'RateLimit',
    'RateLimit-Policy',
    'WWW-Authenticate',
  ]);
});

it('a web page of a listed origin may read an error', async () => {
  const answer = await api.request('/v0/accounts', { headers: { origin: APP } });
  expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([401, APP]);
});

it('a web page of another origin may not', async () => {
  const { headers } = await api.request('/v0/accounts', { headers: { origin: 'https://evil.example.com' } });
  expect(headers.get('access-control-allow-origin')).toBeNull();
});

it.each(['GET', 'POST', 'DELETE'])('a preflight allows %s with credentials in a header', async (method) => {
  const { status, headers } = await preflight(APP, method);
  expect([status, headers.get('access-control-allow-origin')]).toEqual([204, APP]);
  expect(headers.get('access-control-allow-methods')?.split(',')).toEqual(['GET', 'POST', 'DELETE']);
  expect(headers.get('access-control-allow-headers')).toBe('authorization');
  expect(headers.get('access-control-max-age')).toBe('600');
});

it('a preflight allows nothing to another origin', async () => {
  const { headers } = await preflight('https://evil.example.com', 'GET');
  expect(headers.get('access-control-allow-origin')).toBeNull();
});

it('a preflight is a method like any other where no origin is listed', async () => {
  const closed = await startApi({ warehouse: api.dependencies.warehouse });
  try {
    const headers = { origin: APP, 'access-control-request-method': 'GET' };
    const answer = await closed.request('/v0/accounts', { method: 'OPTIONS', headers });
    expect([answer.status, errorOf(answer).error]).toEqual([405, 'method_not_allowed']);
    expect(answer.headers.get('allow')).toBe('GET, HEAD');
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  } finally {
    await closed.stop();
  }
});
