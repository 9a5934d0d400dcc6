/**
 * Alerts over HTTP: creation, changes, what members see, deliveries and tests of an alert. authorisation.it.test.ts covers who may do what.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { bearer, errorOf, NOW, startApi, type TestApi } from '../harness/api.js';

let api: TestApi;
beforeAll(async () => {
  api = await startApi({}, 'away');
});
afterAll(() => api.stop());

describe('alerts', () => {
  let account: string;
  let owner: string;
  let number = 0;
  beforeEach(async () => {
    number += 1;
    account = `alerted-${number}`;
    owner = await api.key(account);
  });

  const list = z.array(z.looseObject({ id: z.string() }));
  const alertBody = z.object({ id: z.string() });

  /** @param path below the alerts of the account */
  function ask(method: string, path: string, body?: unknown, key = owner, version = '2026-04-16') {
    return api.request(`/v0/accounts/${account}/alerts${path}`, {
      method,
      headers: { ...bearer(key).headers, 'svc-version': version },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  async function create(settings = {}): Promise<z.output<typeof alertBody>> {
    return alertBody.parse((await ask('POST', '', { ...ALERT_SETTINGS, ...settings })).body);
  }

  it('a new alert is at its Location, without the secret that only its creation returns', async () => {
    const { thresholds: _, ...requested } = ALERT_SETTINGS;
    const created = await ask('POST', '', { ...requested, amount: '100.50' });
    const { secret, ...alert } = z.looseObject({ secret: z.string() }).parse(created.body);
    expect([created.status, alert]).toMatchObject([201, { ...ALERT_SETTINGS, amount: '100.5', fired: [] }]);
    expect(Buffer.from(secret.replace('whsec_', ''), 'base64')).toHaveLength(32);
    const shown = await api.request(`/v0/accounts/${account}/${created.headers.get('location')}`, bearer(owner));
    expect(shown.body).toEqual(alert);
    expect(JSON.stringify(api.log)).not.toContain(secret);
  });

  it('the list of alerts is a bare array at the first version, and has pages by name from the second on', async () => {
    for (const name of ['b', 'a', 'c']) await create({ name });
    const { body } = await ask('GET', '');
    expect(list.parse(body)).toHaveLength(3);
    const page = await ask('GET', '?sort=name:asc&limit=2', undefined, owner, '2026-04-28');
    expect(page.body).toMatchObject({ data: [{ name: 'a' }, { name: 'b' }], meta: { hasMore: true, total: 3 } });
  });

  it('an alert of a workspace is hidden from members, in the list and by its id', async () => {
    const member = await api.key(account, 'member');
    const { id } = await create({ filters: { workspace: ['main'] } });
    await create({ name: 'of all' });
    expect((await ask('GET', '', undefined, member)).body).toMatchObject([{ name: 'of all' }]);
    expect((await ask('GET', `/${id}`, undefined, member)).status).toBe(404);
  });

  it('only who may change an alert sees its whole url, in the list and by its id', async () => {
    const url = 'https://hooks.example.com/services/T0/B0/secret';
    const { id } = await create({ url });
    const readers = [await api.key(account, 'member'), await api.key(undefined, 'operator')];
    for (const key of readers) {
      const origin = { url: 'https://hooks.example.com' };
      expect((await ask('GET', '', undefined, key)).body).toMatchObject([origin]);
      expect((await ask('GET', `/${id}`, undefined, key)).body).toMatchObject(origin);
      const page = await ask('GET', '?limit=1', undefined, key, '2026-04-28');
      expect(page.body).toMatchObject({ data: [origin] });
    }
    expect((await ask('GET', `/${id}`)).body).toMatchObject({ url });
    expect((await ask('PATCH', `/${id}`, { name: 'Spend' })).body).toMatchObject({ url });
  });

  it.each(['slack', 'teams'])(
    'the url of an alert to %s is a secret: nobody sees more than its origin',
    async (format) => {
      const url = 'https://hooks.example.com/services/T0/B0/secret';
      const origin = { format, url: 'https://hooks.example.com' };
      const created = await ask('POST', '', { ...ALERT_SETTINGS, format, url });
      expect([created.status, created.body]).toMatchObject([201, origin]);
      expect(created.body).not.toHaveProperty('secret');
      const { id } = alertBody.parse(created.body);
      for (const key of [owner, await api.key(account, 'member'), await api.key(undefined, 'operator')]) {
        expect((await ask('GET', `/${id}`, undefined, key)).body).toMatchObject(origin);
        expect((await ask('GET', '', undefined, key)).body).toMatchObject([origin]);
      }
      expect((await ask('PATCH', `/${id}`, { name: 'Spend' })).body).toMatchObject({ name: 'Spend', ...origin });
      expect(await api.dependencies.alerts.find(id)).toMatchObject({ format, url });
      expect((await ask('POST', `/${id}/test`)).body).toMatchObject({ payload: { type: 'alert.test' } });
      const delivery = (await ask('GET', `/${id}/deliveries`)).body;
      for (const seen of [delivery, api.log]) expect(JSON.stringify(seen)).not.toContain('T0/B0');
    },
  );

  it('a change keeps the kind of target of an alert, and cannot replace its secret url with the origin that is shown', async () => {
    const url = 'https://hooks.example.com/services/T0';
    const slack = await create({ format: 'slack', url });
    const mail = await create({ url: undefined, to: ['a@example.com'] });
    const signed = await create();
    for (const [{ id }, change, parameter] of [
      [slack, { url: 'https://hooks.example.com' }, 'url'],
      [slack, { format: 'standard' }, 'format'],
      [slack, { rotateSecret: true }, 'rotateSecret'],
      [slack, { to: ['a@example.com'] }, 'to'],
      [mail, { url }, 'to'],
      [mail, { rotateSecret: true }, 'rotateSecret'],
      [signed, { to: ['a@example.com'] }, 'to'],
      [signed, { period: 'day', forecast: [100] }, 'forecast'],
      [signed, { thresholds: [] }, 'thresholds'],
    ] as const) {
      const { status, body } = await ask('PATCH', `/${id}`, change);
      expect([status, body]).toMatchObject([400, { details: [{ parameter }] }]);
    }
    expect((await ask('PATCH', `/${slack.id}`, { url: `${url}/new` })).status).toBe(200);
    expect(await api.dependencies.alerts.find(slack.id)).toMatchObject({ format: 'slack', url: `${url}/new` });
  });

  it('an alert by e-mail has a delivery for each address, and no url, format or secret', async () => {
    const to = ['a@example.com', 'b@example.com'];
    const created = await ask('POST', '', { ...ALERT_SETTINGS, url: undefined, to, thresholds: [], forecast: [100] });
    expect([created.status, created.body]).toMatchObject([
      201,
      { to, thresholds: [], forecast: [100], forecastFired: [] },
    ]);
    for (const name of ['url', 'format', 'secret']) expect(created.body).not.toHaveProperty(name);
    const { id } = alertBody.parse(created.body);
    expect((await ask('POST', `/${id}/test`)).body).toMatchObject({ to: 'a@example.com', state: 'pending' });
    const { body } = await ask('GET', `/${id}/deliveries`);
    expect(list.parse(body).map((delivery) => delivery['to'])).toEqual(expect.arrayContaining(to));
    expect(body).toMatchObject([{ payload: { type: 'alert.test' } }, { payload: { data: { alertId: id } } }]);
    const reader = bearer(await api.key(account, 'member', 'reader'));
    const asMember = async (path: string) =>
      (await api.request(`/v0/accounts/${account}/alerts/${id}${path}`, reader)).body;
    expect(await asMember('')).toMatchObject({ to: ['…@example.com', '…@example.com'] });
    for (const { to: shown } of list.parse(await asMember('/deliveries'))) expect(shown).toBe('…@example.com');
    expect((await ask('PATCH', `/${id}`, { to: ['c@example.com'] })).body).toMatchObject({ to: ['c@example.com'] });
  });

  it('an alert by e-mail is rejected without a mail server, and the error names the settings of the operator', async () => {
    const { warehouse } = api.dependencies;
    const without = await startApi({ warehouse, keys: api.keys, sendsMail: false });
    const body = JSON.stringify({ ...ALERT_SETTINGS, url: undefined, to: ['a@example.com'] });
    const response = await without.request(`/v0/accounts/${account}/alerts`, {
      method: 'POST',
      ...bearer(owner),
      body,
    });
    expect([response.status, response.body]).toMatchObject([400, { details: [{ parameter: 'to' }] }]);
    expect(JSON.stringify(response.body)).toContain('which the operator has not set (ALERT_SMTP_URL, ALERT_SMTP_FROM)');
    await without.stop();
  });

  it('an alert shows which thresholds its forecast has reached', async () => {
    const { id } = await create({ forecast: [50, 100] });
    const { alerts } = api.dependencies;
    const alert = await alerts.find(id);
    const fired = { threshold: 50, value: '10', forecast: '60.000000000001', firedAt: '2025-11-15T12:00:00.000Z' };
    if (alert) await alerts.fire(alert, Date.UTC(2025, 10), fired, '{}');
    const { text } = await ask('GET', `/${id}`);
    expect(text).toContain('"fired":[],"forecastFired":[{');
    expect(text).toContain('"forecast":60.000000000001}');
  });

  it('deliveries that an alert sent while it was about a workspace are hidden from members', async () => {
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

  it('an alert of another account is 404', async () => {
    const { id } = await create();
    account = 'another';
    owner = await api.key(account);
    for (const [method, body] of [['GET'], ['PATCH', {}], ['DELETE']] as const) {
      expect((await ask(method, `/${id}`, body)).status).toBe(404);
    }
  });

  it('a change of an alert replaces the members that it names and nothing else', async () => {
    const { id } = await create({ filters: { resourceName: ['b', 'a', 'a'] } });
    const { body } = await ask('PATCH', `/${id}`, { amount: '7', filters: { resourceType: ['agent'] } });
    expect(body).toMatchObject({ ...ALERT_SETTINGS, amount: '7', filters: { resourceType: ['agent'] } });
    expect(body).not.toHaveProperty('secret');
    const refused = await ask('PATCH', `/${id}`, { measure: 'usage' });
    expect(errorOf(refused).details).toMatchObject([{ parameter: 'filters.billingDimension' }]);
  });

  it('an account has at most 100 alerts, even if more are created concurrently', async () => {
    const responses = await Promise.all(Array.from({ length: 110 }, () => ask('POST', '', ALERT_SETTINGS)));
    const refused = responses.filter(({ status }) => status !== 201).map(errorOf);
    expect(refused.map(({ error }) => error)).toEqual(Array(10).fill('too_many_alerts'));
  });

  it('an alert shows the exact values that fired it until its period ends', async () => {
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

  it('a test is a delivery of one alert, and sending it again does not create another', async () => {
    const [alert, other] = [await create(), await create()];
    const tested = await ask('POST', `/${alert.id}/test`);
    expect(tested.body).toMatchObject({ state: 'pending', attempts: 0, payload: { type: 'alert.test' } });
    const [delivery] = list.parse((await ask('GET', `/${alert.id}/deliveries`)).body);
    expect(delivery).toEqual(tested.body);
    expect((await ask('GET', `/${other.id}/deliveries`)).body).toEqual([]);
    expect((await ask('POST', `/${alert.id}/deliveries/${delivery?.id}/redeliver`)).body).toEqual(delivery);
    expect((await ask('POST', `/${other.id}/deliveries/${delivery?.id}/redeliver`)).status).toBe(404);
  });
});
