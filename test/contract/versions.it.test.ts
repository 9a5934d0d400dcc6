import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DAY, metricsPath, startApi, type TestApi } from '../harness/api.js';

let api: TestApi;
let key: string;

beforeAll(async () => {
  api = await startApi();
  key = await api.key('acme');
});
afterAll(() => api.stop());

const ask = (path: string, version?: string) =>
  api.request(path, {
    headers: { authorization: `Bearer ${key}`, ...(version !== undefined && { 'svc-version': version }) },
  });

it('Svc-Version is the earliest stable one when it is left out, and is echoed', async () => {
  expect((await ask(metricsPath('acme', DAY))).headers.get('svc-version')).toBe('2026-04-16');
});

it.each(['2026-04-16', '2026-04-28'])('Svc-Version %s applies and is echoed', async (version) => {
  const answer = await ask(metricsPath('acme', DAY), version);
  expect([answer.status, answer.headers.get('svc-version')]).toEqual([200, version]);
});

it('Svc-Version changes nothing in an answer of the Billing API', async () => {
  const [old, recent] = await Promise.all(
    ['2026-04-16', '2026-04-28'].map((version) => ask(metricsPath('acme', DAY), version)),
  );
  expect(recent?.text).toBe(old?.text);
});
