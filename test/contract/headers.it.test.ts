/** What the headers of a request change: who asks, in which version of the API, and from which web page. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { bearer, DAY, errorBody, errorOf, metricsPath, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { sendBytes } from './raw-http.js';

const APP = 'https://app.example.com';
const FOREIGN = 'https://evil.example.com';

let api: TestApi;
let admin: string;
beforeAll(async () => {
  api = await startApi({ corsOrigins: [APP] });
  admin = await api.key('acme');
  await api.seed([event({ workspace: 'main', cost: '1' }), event({ workspace: 'other', cost: '2' })]);
});
afterAll(() => api.stop());

const withHeaders = (headers: Record<string, string>) => api.request(metricsPath('acme', DAY), { headers });
const asAdmin = (headers: Record<string, string>) => withHeaders({ ...bearer(admin).headers, ...headers });
const accounts = (headers: Record<string, string>) => api.request('/v0/accounts', { headers });

it('a credential may stand in either header or in both, and the case of its scheme does not matter', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    const [one, other] = [{ authorization: `${scheme} ${admin}` }, { 'x-svc-authorization': `Bearer ${admin}` }];
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
    { authorization: `Bearer ${admin}`, 'x-svc-authorization': other },
    { authorization: other, 'x-svc-authorization': `Bearer ${admin}` },
  ]) {
    const answer = await withHeaders(headers);
    expect(answer.status).toBe(status);
    if (status === 400) expect(errorOf(answer).error).toBe('conflicting_credentials');
  }
});

it.each(['Authorization', 'X-Svc-Authorization'])('two different %s have a message of their own', async (name) => {
  const send = (...values: string[]) => {
    const sent = values.map((value) => `${name}: ${value}\r\n`).join('');
    return sendBytes(api.url, `GET /v0/accounts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${sent}\r\n`, {
      keepsOpen: true,
    });
  };
  for (const other of ['Bearer other', 'Basic YTpi']) {
    const { status, body } = await send(`Bearer ${admin}`, other);
    const { error, message } = errorBody.parse(body);
    expect([status, error]).toEqual([400, 'conflicting_credentials']);
    expect(message).toContain(`2 ${name} headers`);
  }
  expect((await send(`Bearer ${admin}`, `Bearer ${admin}`)).status).toBe(200);
});

it('X-Svc-Workspace does not filter billing: a member sees the account-wide aggregate', async () => {
  const member = await api.key('acme', 'member');
  const answer = await withHeaders({ ...bearer(member).headers, 'x-svc-workspace': 'main' });
  expect(answer.text).toContain('"totalCost":3');
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
  expect(headers.get('access-control-expose-headers')?.split(',')).toEqual([
    'Svc-Version',
    'ETag',
    'Location',
    'Age',
    'X-Request-Id',
    'Retry-After',
    'RateLimit',
    'RateLimit-Policy',
    'WWW-Authenticate',
  ]);
});

it('a web page of a listed origin may read an error, and one of another origin nothing', async () => {
  const [own, foreign] = [await accounts({ origin: APP }), await accounts({ origin: FOREIGN })];
  expect([own.status, own.headers.get('access-control-allow-origin')]).toEqual([401, APP]);
  expect(foreign.headers.get('access-control-allow-origin')).toBeNull();
});

const preflight = (origin: string, method: string) =>
  api.request(metricsPath('acme', DAY), {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': 'authorization' },
  });

it.each(['GET', 'POST', 'DELETE'])('a preflight allows %s with credentials in a header', async (method) => {
  const { status, headers } = await preflight(APP, method);
  expect([status, headers.get('access-control-allow-origin')]).toEqual([204, APP]);
  expect(headers.get('access-control-allow-methods')?.split(',')).toEqual(['GET', 'POST', 'PATCH', 'DELETE']);
  expect(headers.get('access-control-allow-headers')).toBe('authorization');
  expect(headers.get('access-control-max-age')).toBe('600');
});

it('a preflight allows nothing to another origin', async () => {
  const { headers } = await preflight(FOREIGN, 'GET');
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
