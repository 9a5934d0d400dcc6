import { afterAll, beforeEach, expect, it } from '@jest/globals';
import { MS_PER_DAY } from '@meterline/catalog';
import { Redis } from 'ioredis';
import { ALERT_SETTINGS } from '../../../../test/harness/alerts.js';
import { testRedisUrl, uniquePrefix } from '../../../../test/harness/stack.js';
import { type Alert, validSecrets } from './alert.js';
import { AlertStore } from './alerts.js';

const NOW = new Date('2025-10-15T12:00:00.000Z');
const LATER = new Date('2025-10-16T12:00:00.000Z');
const OCTOBER = Date.UTC(2025, 9);
const FIRED = { threshold: 50, value: '50.000000000001', firedAt: NOW.toISOString() };

const redis = new Redis(testRedisUrl());
let prefix: string;
let alerts: AlertStore;
let alert: Alert;
beforeEach(async () => {
  prefix = uniquePrefix();
  alerts = new AlertStore(redis, prefix);
  alert = await alerts.create('acme', ALERT_SETTINGS, NOW);
});
afterAll(() => redis.quit());

const deliveriesOf = async ({ account, id }: Alert) =>
  (await alerts.deliveries.listOf(account, id, NOW)).map((one) => one.id);
const changed = async (change: Parameters<AlertStore['change']>[1], now = LATER) => {
  const found = await alerts.change(alert.id, change, now, () => undefined);
  if (!found) throw new Error('the alert does not exist');
  return found;
};

it('a threshold fires once in its period, even if several processes find it at the same time', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, () => new AlertStore(redis, prefix).fire(alert, OCTOBER, FIRED, '{}')),
  );
  expect(outcomes.filter((outcome) => outcome === 'fired')).toHaveLength(1);
  expect(await deliveriesOf(alert)).toHaveLength(1);
  expect(await alerts.firedOf(alert, OCTOBER)).toEqual([FIRED]);
  expect(await alerts.firedOf(alert, Date.UTC(2025, 8))).toEqual([]);
});

it('a threshold of the forecast fires apart from the same threshold of the amount, and each once', async () => {
  const both = await changed({ forecast: [50] });
  const forecast = { ...FIRED, forecast: '120' };
  expect(await alerts.fire(both, OCTOBER, FIRED, '{}')).toBe('fired');
  expect(await alerts.fire(both, OCTOBER, forecast, '{}')).toBe('fired');
  expect(await alerts.fire(both, OCTOBER, forecast, '{}')).toBe('already');
  expect(await alerts.firedOf(both, OCTOBER)).toEqual([FIRED, forecast]);
  const deliveries = await Promise.all((await deliveriesOf(both)).map((id) => alerts.deliveries.find(id)));
  expect(deliveries.map((one) => one?.type).sort()).toEqual(['usage.forecast_reached', 'usage.threshold_reached']);
});

it('a crossing has one delivery for each address, with an ID of its own that depends only on crossing and address', async () => {
  const to = ['a@example.com', 'b@example.com', 'c@example.com'];
  const mail = await alerts.create('acme', { ...ALERT_SETTINGS, url: undefined, to }, NOW);
  const body = JSON.stringify({ subject: 'Ä \ud800 "quoted" \u0000', text: '', html: '' });
  const outcomes = await Promise.all(
    Array.from({ length: 5 }, () => alerts.fire(mail, OCTOBER, FIRED, '{"exact":0.10}', body)),
  );
  expect(outcomes.filter((outcome) => outcome === 'fired')).toHaveLength(1);
  const ids = await deliveriesOf(mail);
  const deliveries = await Promise.all(ids.map((id) => alerts.deliveries.find(id)));
  expect(deliveries.map((one) => one?.to).sort()).toEqual(to);
  for (const one of deliveries) expect(one).toMatchObject({ payload: '{"exact":0.10}', body, state: 'pending' });
  await redis.del(`${prefix}:alert-marks:${mail.id}`);
  await alerts.fire(mail, OCTOBER, FIRED, '{}', body);
  expect((await deliveriesOf(mail)).sort()).toEqual(ids.sort());
});

it('an alert that an earlier version stored is a signed webhook without a forecast', async () => {
  const { id, forecast: _, format: __, ...record } = alert;
  await redis.hset(`${prefix}:alerts`, id, JSON.stringify(record));
  expect(await alerts.find(id)).toEqual(alert);
});

it('the id of a delivery depends only on its crossing', async () => {
  await alerts.fire(alert, OCTOBER, FIRED, '{}');
  const [first] = await deliveriesOf(alert);
  await redis.del(`${prefix}:alert-marks:${alert.id}`);
  await alerts.fire(alert, OCTOBER, { ...FIRED, value: '60' }, '{}');
  expect(await deliveriesOf(alert)).toEqual([first]);
});

it.each([
  { name: 'Spend' },
  { url: 'https://example.org/' },
  { rotateSecret: true },
  { thresholds: [50, 90] },
] as const)('a threshold that has fired does not fire again after the change %j', async (change) => {
  await alerts.fire(alert, OCTOBER, FIRED, '{}');
  expect(await alerts.fire(await changed({ ...change } as object), OCTOBER, FIRED, '{}')).toBe('already');
});

it('a threshold fires again after a change of the amount, but not when the amount is changed back', async () => {
  await alerts.fire(alert, OCTOBER, FIRED, '{}');
  expect(await alerts.fire(await changed({ amount: '90' }), OCTOBER, FIRED, '{}')).toBe('fired');
  expect(await alerts.fire(await changed({ amount: '100' }), OCTOBER, FIRED, '{}')).toBe('already');
});

it('an alert that was changed or deleted after it was read does not fire', async () => {
  await changed({ name: 'Spend' });
  expect(await alerts.fire(alert, OCTOBER, FIRED, '{}')).toBe('changed');
  await alerts.remove(alert);
  expect(await alerts.fire(alert, OCTOBER, FIRED, '{}')).toBe('changed');
});

it('an alert that was changed within a millisecond of its creation does not fire by its old definition', async () => {
  await changed({ name: 'Spend' }, NOW);
  expect(await alerts.fire(alert, OCTOBER, FIRED, '{}')).toBe('changed');
});

it('an alert whose record has an unknown member of a newer release fires', async () => {
  const key = `${prefix}:alerts`;
  const record = JSON.parse((await redis.hget(key, alert.id)) ?? '');
  await redis.hset(key, alert.id, JSON.stringify({ channel: 'email', ...record }, null, 1));
  const found = await alerts.find(alert.id);
  expect(found && (await alerts.fire(found, OCTOBER, FIRED, '{}'))).toBe('fired');
});

it('an alert that has fired 5,000 times does not fire again', async () => {
  const marks = Array.from({ length: 5_000 }, (_, n) => [`definition 2025-10-01T00:00:00Z ${n}`, '{}']);
  await redis.hset(`${prefix}:alert-marks:${alert.id}`, Object.fromEntries(marks));
  expect(await alerts.fire(alert, OCTOBER, FIRED, '{}')).toBe('full');
  expect(await deliveriesOf(alert)).toEqual([]);
});

it('new thresholds count from their change on, and all of them do after a change of the definition', async () => {
  const at = NOW.toISOString();
  const added = await changed({ thresholds: [50, 120] });
  expect(added.thresholds).toEqual([
    { percent: 50, since: at },
    { percent: 120, since: LATER.toISOString() },
  ]);
  expect((await changed({ filters: {}, period: 'month' })).thresholds).toEqual(added.thresholds);
  const since = new Date('2025-10-17T00:00:00.000Z');
  const another = await changed({ filters: { resourceName: ['b', 'a'] } }, since);
  expect(another.thresholds.map((threshold) => threshold.since)).toEqual([since.toISOString(), since.toISOString()]);
  expect(another.filters).toEqual({ resourceName: ['a', 'b'] });
});

it('two concurrent changes are both applied', async () => {
  await Promise.all([changed({ name: 'Spend' }), changed({ amount: '7' })]);
  expect(await alerts.find(alert.id)).toMatchObject({ name: 'Spend', amount: '7' });
});

/** When a pending delivery is due; undefined if it is not pending. */
async function dueAt(id: string): Promise<number | undefined> {
  const score = await redis.zscore(`${prefix}:alert-deliveries-pending`, id);
  return score === null ? undefined : Number(score);
}

const LEASE = NOW.getTime() + 15_000;

it('a dropped delivery is neither due nor kept', async () => {
  const { deliveries } = alerts;
  const { id } = await deliveries.addTest(alert, NOW, '{}');
  await deliveries.drop(id);
  expect([await deliveries.claim(LATER.getTime(), LEASE, 10), await deliveries.find(id)]).toEqual([[], undefined]);
});

it('a claimed delivery is not due again before its lease expires', async () => {
  const { deliveries } = alerts;
  const { id } = await deliveries.addTest(alert, NOW, '{}');
  expect(await deliveries.claim(NOW.getTime(), LEASE, 10)).toEqual([id]);
  expect(await deliveries.claim(LEASE - 1, LEASE + 1, 10)).toEqual([]);
  expect(await deliveries.claim(LEASE, LEASE + 1, 10)).toEqual([id]);
});

it('a claim returns at most the number requested, the longest due first', async () => {
  const { deliveries } = alerts;
  const [first, second, third] = [await addTest(), await addTest(), await addTest()];
  await deliveries.claim(NOW.getTime(), LEASE, 10);
  await deliveries.postpone(first.id, LEASE, 3);
  await deliveries.postpone(second.id, LEASE, 1);
  await deliveries.postpone(third.id, LEASE, 2);
  expect(await deliveries.claim(NOW.getTime(), LEASE, 2)).toEqual([second.id, third.id]);
});

it('a delivery that was claimed again or redelivered is not postponed', async () => {
  const { deliveries } = alerts;
  const { id } = await addTest();
  await deliveries.claim(NOW.getTime(), LEASE, 10);
  await deliveries.claim(LEASE, LEASE + 1, 10);
  await deliveries.postpone(id, LEASE, 3);
  expect(await dueAt(id)).toBe(LEASE + 1);
  await deliveries.redeliver(id);
  await deliveries.postpone(id, LEASE + 1, 3);
  expect(await dueAt(id)).toBe(0);
});

const addTest = () => alerts.deliveries.addTest(alert, NOW, '{"exact":0.10}');

it('a delivery is due until an attempt is noted, and then at the time of the next attempt', async () => {
  const { deliveries } = alerts;
  const delivery = await addTest();
  await deliveries.claim(NOW.getTime(), LEASE, 10);
  const first = { at: NOW, outcome: '500', state: 'pending', leaseUntil: LEASE, dueAt: LATER.getTime() } as const;
  await deliveries.noteAttempt(delivery, first);
  expect(await dueAt(delivery.id)).toBe(LATER.getTime());
  const again = await deliveries.find(delivery.id);
  expect(again).toMatchObject({ attempts: 1, failures: 1 });
  const second = { at: LATER, outcome: '204', state: 'delivered', leaseUntil: LATER.getTime(), dueAt: 0 } as const;
  if (again) await deliveries.noteAttempt(again, second);
  expect(await dueAt(delivery.id)).toBeUndefined();
  const done = { payload: '{"exact":0.10}', state: 'delivered', attempts: 2, lastOutcome: '204' };
  expect(await deliveries.find(delivery.id)).toMatchObject(done);
  await deliveries.redeliver(delivery.id);
  expect(await deliveries.claim(NOW.getTime(), LEASE, 10)).toEqual([delivery.id]);
  expect(await deliveries.find(delivery.id)).toMatchObject({ state: 'pending', failures: 0 });
});

it.each(['failed', 'delivered', 'pending'] as const)(
  'a delivery that is redelivered during an attempt is due at once, even if the attempt is noted as %s',
  async (state) => {
    const { deliveries } = alerts;
    const delivery = await addTest();
    await deliveries.claim(NOW.getTime(), LEASE, 10);
    await deliveries.redeliver(delivery.id);
    const attempt = { at: NOW, outcome: '500', state, leaseUntil: LEASE, dueAt: LATER.getTime() };
    expect(await deliveries.noteAttempt(delivery, attempt)).toBe('pending');
    const found = await deliveries.find(delivery.id);
    expect(found).toMatchObject({ state: 'pending', attempts: 1, failures: 0, lastOutcome: '500' });
    expect(await deliveries.claim(NOW.getTime(), LEASE + 1, 10)).toEqual([delivery.id]);
    const next = { ...attempt, at: LATER, state: 'failed', leaseUntil: LEASE + 1 } as const;
    expect(found && (await deliveries.noteAttempt(found, next))).toBe('failed');
    expect(await dueAt(delivery.id)).toBeUndefined();
  },
);

it('an attempt whose lease has expired leaves the lease of another process as it is', async () => {
  const { deliveries } = alerts;
  const delivery = await addTest();
  await deliveries.claim(NOW.getTime(), LEASE, 10);
  await deliveries.claim(LEASE, LEASE + 15_000, 10);
  const attempt = { at: NOW, outcome: '500', state: 'failed', leaseUntil: LEASE, dueAt: 0 } as const;
  expect(await deliveries.noteAttempt(delivery, attempt)).toBe('pending');
  expect(await dueAt(delivery.id)).toBe(LEASE + 15_000);
});

it('a delivered webhook is done although another process has claimed the delivery since', async () => {
  const { deliveries } = alerts;
  const delivery = await addTest();
  await deliveries.claim(NOW.getTime(), LEASE, 10);
  await deliveries.claim(LEASE, LEASE + 15_000, 10);
  const attempt = { at: NOW, outcome: '204', state: 'delivered', leaseUntil: LEASE, dueAt: 0 } as const;
  expect(await deliveries.noteAttempt(delivery, attempt)).toBe('delivered');
  expect(await dueAt(delivery.id)).toBeUndefined();
});

it('an attempt that ends after another process has delivered the webhook changes nothing', async () => {
  const { deliveries } = alerts;
  const delivery = await addTest();
  const attempt = { at: NOW, outcome: '204', leaseUntil: 0, dueAt: 0 };
  await deliveries.noteAttempt(delivery, { ...attempt, state: 'delivered' });
  for (const state of ['pending', 'failed'] as const)
    expect(await deliveries.noteAttempt(delivery, { ...attempt, outcome: '500', state })).toBe('delivered');
  expect(await deliveries.find(delivery.id)).toMatchObject({ state: 'delivered', attempts: 1, lastOutcome: '204' });
  expect(await dueAt(delivery.id)).toBeUndefined();
});

it('every secret that was replaced within the last day still signs', async () => {
  const first = await changed({ rotateSecret: true }, NOW);
  const second = await changed({ rotateSecret: true }, new Date(NOW.getTime() + 1));
  expect(validSecrets(second, NOW)).toEqual([second.secret, first.secret, alert.secret]);
  expect(validSecrets(second, new Date(NOW.getTime() + MS_PER_DAY))).toEqual([second.secret, first.secret]);
  expect(
    validSecrets(await changed({ rotateSecret: true }, new Date(NOW.getTime() + 2 * MS_PER_DAY)), NOW),
  ).toHaveLength(2);
});

it('an attempt does not restore a deleted delivery', async () => {
  const delivery = await alerts.deliveries.addTest(alert, NOW, '{}');
  await alerts.remove(alert);
  await alerts.deliveries.noteAttempt(delivery, { at: NOW, outcome: '500', state: 'pending', leaseUntil: 0, dueAt: 0 });
  expect(await alerts.deliveries.find(delivery.id)).toBeUndefined();
  expect(await alerts.deliveries.countPending()).toBe(0);
  expect(await deliveriesOf(alert)).toEqual([]);
});

it('an account keeps its newest 1,000 deliveries and those that are pending, each for at most 30 days', async () => {
  const times = Array.from({ length: 1_001 }, (_, n) => new Date(NOW.getTime() + n));
  await Promise.all(times.map((time) => alerts.deliveries.addTest(alert, time, '{}')));
  expect(await deliveriesOf(alert)).toHaveLength(1_001);
  await redis.del(`${prefix}:alert-deliveries-pending`);
  await alerts.deliveries.addTest(alert, new Date(NOW.getTime() + 1_001), '{}');
  expect(await deliveriesOf(alert)).toHaveLength(1_000);
  await alerts.deliveries.addTest(alert, new Date(NOW.getTime() + 31 * MS_PER_DAY), '{}');
  expect(await deliveriesOf(alert)).toHaveLength(1);
  expect(await alerts.deliveries.countPending()).toBe(1);
});

it('erasing an account deletes everything about its alerts, and nothing of other accounts', async () => {
  const other = await alerts.create('zeta', ALERT_SETTINGS, NOW);
  await alerts.fire(alert, OCTOBER, FIRED, '{}');
  await alerts.deliveries.addTest(alert, NOW, '{}');
  // An interrupted deletion leaves this state.
  const cutOff = await alerts.create('acme', ALERT_SETTINGS, NOW);
  await alerts.deliveries.addTest(cutOff, NOW, '{}');
  await redis.multi().hdel(`${prefix}:alerts`, cutOff.id).srem(`${prefix}:alerts-of:acme`, cutOff.id).exec();
  expect(await alerts.eraseOf('acme')).toBe(1);
  const names = await redis.keys(`${prefix}:*`);
  expect(names.sort()).toEqual([`${prefix}:alerts`, `${prefix}:alerts-of:zeta`]);
  expect(await alerts.listOf('zeta')).toEqual([other]);
});

it('an invalid record does not stop the listing of others', async () => {
  await redis.hset(`${prefix}:alerts`, 'alr_x', '{"account":');
  const found: Alert[] = [];
  for await (const slice of alerts.all()) found.push(...slice);
  expect(found).toEqual([alert]);
});
