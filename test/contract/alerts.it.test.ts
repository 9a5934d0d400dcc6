/** Alerts as their callers meet them. Who may do what is in the authorisation matrix, what is refused in refusals. */
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { z } from 'zod';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { bearer, errorOf, NOW, startApi, type TestApi } from '../harness/api.js';

let api: TestApi;
let account: string;
let admin: string;
let number = 0;

beforeAll(async () => {
  api = await startApi();
});
beforeEach(async () => {
  number += 1;
  account = `account-${number}`;
  admin = await api.key(account);
});
afterAll(() => api.stop());

const list = z.array(z.looseObject({ id: z.string() }));
const alertBody = z.object({ id: z.string() });

/** @param place below the account's alerts */
function ask(method: string, place: string, body?: unknown, key = admin, version = '2026-04-16') {
  return api.request(`/v0/accounts/${account}/alerts${place}`, {
    method,
    headers: { ...bearer(key).headers, 'svc-version': version },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function create(settings = {}): Promise<z.output<typeof alertBody>> {
  return alertBody.parse((await ask('POST', '', { ...ALERT_SETTINGS, ...settings })).body);
}

it('a new alert is at its Location, without the secret that its creation has shown', async () => {
  const { thresholds: _, ...requested } = ALERT_SETTINGS;
  const created = await ask('POST', '', { ...requested, amount: '0100.50' });
  const { secret, ...alert } = z.looseObject({ secret: z.string() }).parse(created.body);
  expect([created.status, alert]).toMatchObject([201, { ...ALERT_SETTINGS, amount: '100.5', fired: [] }]);
  expect(Buffer.from(secret.replace('whsec_', ''), 'base64')).toHaveLength(32);
  const shown = await api.request(created.headers.get('location') ?? '', bearer(admin));
  expect(shown.body).toEqual(alert);
  expect(JSON.stringify(api.log)).not.toContain(secret);
});

it('alerts are a bare list at the first version, and pages by name at the second', async () => {
  for (const name of ['b', 'a', 'c']) await create({ name });
  const { body } = await ask('GET', '');
  expect(list.parse(body)).toHaveLength(3);
  const page = await ask('GET', '?sort=name:asc&limit=2', undefined, admin, '2026-04-28');
  expect(page.body).toMatchObject({ data: [{ name: 'a' }, { name: 'b' }], meta: { hasMore: true, total: 3 } });
});

it('a member is not shown an alert of a workspace, neither in the list nor by its id', async () => {
  const member = await api.key(account, 'member');
  const { id } = await create({ filters: { workspace: ['main'] } });
  await create({ name: 'of all' });
  expect((await ask('GET', '', undefined, member)).body).toMatchObject([{ name: 'of all' }]);
  expect((await ask('GET', `/${id}`, undefined, member)).status).toBe(404);
});

it('a member is not shown what an alert sent while it was one of a workspace', async () => {
  const member = await api.key(account, 'member');
  const { id } = await create({ filters: { workspace: ['main'] } });
  await ask('POST', `/${id}/test`);
  await ask('PATCH', `/${id}`, { filters: {} });
  await ask('POST', `/${id}/test`);
  expect((await ask('GET', `/${id}/deliveries`)).body).toHaveLength(2);
  expect((await ask('GET', `/${id}/deliveries`, undefined, member)).body).toHaveLength(1);
  const page = await ask('GET', `/${id}/deliveries?limit=1`, undefined, member, '2026-04-28');
  expect(page.body).toMatchObject({ data: [{}], meta: { hasMore: false, nextCursor: '', total: 1 } });
});

it('a body that is not UTF-8 is refused, and not taken with other characters', async () => {
  const body = Buffer.from(JSON.stringify({ ...ALERT_SETTINGS, name: 'café' }), 'latin1');
  const response = await api.request(`/v0/accounts/${account}/alerts`, { method: 'POST', ...bearer(admin), body });
  expect([response.status, errorOf(response).message]).toEqual([
    400,
    expect.stringContaining('a JSON object in UTF-8'),
  ]);
});

it('an alert of another account is not there', async () => {
  const { id } = await create();
  account = 'another';
  admin = await api.key(account);
  for (const [method, body] of [['GET'], ['PATCH', {}], ['DELETE']] as const) {
    expect((await ask(method, `/${id}`, body)).status).toBe(404);
  }
});

it('a change replaces what it names and nothing else', async () => {
  const { id } = await create({ filters: { resourceName: ['b', 'a', 'a'] } });
  const { body } = await ask('PATCH', `/${id}`, { amount: '7', filters: { resourceType: ['agent'] } });
  expect(body).toMatchObject({ ...ALERT_SETTINGS, amount: '7', filters: { resourceType: ['agent'] } });
  expect(body).not.toHaveProperty('secret');
  const refused = await ask('PATCH', `/${id}`, { measure: 'usage' });
  expect(errorOf(refused).details).toMatchObject([{ parameter: 'filters.billingDimension' }]);
});

it('an account has at most 100 alerts, however many are created at once', async () => {
  const responses = await Promise.all(Array.from({ length: 110 }, () => ask('POST', '', ALERT_SETTINGS)));
  const refused = responses.filter(({ status }) => status !== 201).map(errorOf);
  expect(refused.map(({ error }) => error)).toEqual(Array(10).fill('too_many_alerts'));
});

it('what an alert has fired is shown in all its digits while its period lasts', async () => {
  const { id } = await create({ period: 'day' });
  const { alerts } = api.dependencies;
  const alert = await alerts.find(id);
  const fired = { threshold: 50, value: '123456789012345.123456789012', firedAt: NOW.toISOString() };
  if (alert) await alerts.fire(alert, Date.UTC(2025, 10, 15), fired, '{}');
  expect((await ask('GET', `/${id}`)).text).toContain('"value":123456789012345.123456789012');
  api.clock.now = new Date(NOW.getTime() + 86_400_000);
  expect((await ask('GET', `/${id}`)).body).toMatchObject({ fired: [] });
  api.clock.now = NOW;
});

it('a test is a delivery of its alert alone, and the same one when it is sent again', async () => {
  const [alert, other] = [await create(), await create()];
  const tested = await ask('POST', `/${alert.id}/test`);
  expect(tested.body).toMatchObject({ state: 'pending', attempts: 0, payload: { type: 'alert.test' } });
  const [delivery] = list.parse((await ask('GET', `/${alert.id}/deliveries`)).body);
  expect(delivery).toEqual(tested.body);
  expect((await ask('GET', `/${other.id}/deliveries`)).body).toEqual([]);
  expect((await ask('POST', `/${alert.id}/deliveries/${delivery?.id}/redeliver`)).body).toEqual(delivery);
  expect((await ask('POST', `/${other.id}/deliveries/${delivery?.id}/redeliver`)).status).toBe(404);
});
