import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DAY, errorBody, errorOf, metricsPath, readMetrics, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { sendBytes } from './raw-http.js';

let api: TestApi;
let admin: string;
let member: string;

beforeAll(async () => {
  api = await startApi();
  admin = await api.key('acme');
  member = await api.key('acme', 'member');
  await api.seed([event({ workspace: 'main', cost: '1' }), event({ workspace: 'other', cost: '2' })]);
});
afterAll(() => api.stop());

const withHeaders = (headers: Record<string, string>) => api.request(metricsPath('acme', DAY), { headers });

it('either header is enough, and the case of the scheme does not matter', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    expect((await withHeaders({ authorization: `${scheme} ${admin}` })).status).toBe(200);
    expect((await withHeaders({ 'x-svc-authorization': `${scheme} ${admin}` })).status).toBe(200);
  }
});

it('both headers may say the same', async () => {
  const answer = await withHeaders({ authorization: `Bearer ${admin}`, 'x-svc-authorization': `bearer ${admin}` });
  expect(answer.status).toBe(200);
});

it.each(['Bearer other', 'Bearer', 'bearer two words'])('%j beside another bearer token is 400', async (other) => {
  for (const headers of [
    { authorization: `Bearer ${admin}`, 'x-svc-authorization': other },
    { authorization: other, 'x-svc-authorization': `Bearer ${admin}` },
  ]) {
    const answer = await withHeaders(headers);
    expect(answer.status).toBe(400);
    expect(errorOf(answer).error).toBe('conflicting_credentials');
  }
});

it.each(['Basic YTpi', 'Digest username="x"', 'x', ''])(
  '%j beside a bearer token is for something else',
  async (other) => {
    for (const headers of [
      { authorization: `Bearer ${admin}`, 'x-svc-authorization': other },
      { authorization: other, 'x-svc-authorization': `Bearer ${admin}` },
    ]) {
      expect((await withHeaders(headers)).status).toBe(200);
    }
  },
);

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

it('a member sees the account-wide aggregate', async () => {
  expect((await readMetrics(api, 'acme', member, DAY)).summary.totalCost).toBe(3);
});

it('X-Svc-Workspace does not filter billing', async () => {
  const headers = { authorization: `Bearer ${member}`, 'x-svc-workspace': 'main' };
  const answer = await api.request(metricsPath('acme', DAY), { headers });
  expect(answer.text).toContain('"totalCost":3');
});
