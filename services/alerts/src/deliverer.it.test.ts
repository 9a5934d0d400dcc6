import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import {
  connect,
  getDefaultAutoSelectFamilyAttemptTimeout,
  type LookupFunction,
  setDefaultAutoSelectFamilyAttemptTimeout,
} from 'node:net';
import { afterAll, afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { AlertStore, messageBody, periodAt } from '@meterline/service/alerts';
import { allowSlowConnections } from '@meterline/service/connecting';
import { createRegistry } from '@meterline/service/metrics';
import { openQueueConnection } from '@meterline/service/queue';
import { pino } from 'pino';
import { ALERT_SETTINGS, type Receiver, startReceiver } from '../../../test/harness/alerts.js';
import { reply, startMailServer } from '../../../test/harness/mail.js';
import { strangerTo } from '../../../test/harness/queue.js';
import { testRedisUrl, uniquePrefix } from '../../../test/harness/stack.js';
import { until } from '../../../test/harness/waiting.js';
import { Deliverer, type DelivererOptions } from './deliverer.js';
import { createAlertMetrics } from './metrics.js';
import { postWebhook } from './post-webhook.js';
import { mailSender } from './send-mail.js';

const SLOW_SERVER = `const server = require('http').createServer((request, response) => response.end());
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => process.stdout.write(String(server.address().port)));`;
const OCTOBER = Date.UTC(2025, 9);

const redis = openQueueConnection(testRedisUrl());
const logged: object[] = [];
let prefix: string;
let alerts: AlertStore;
let deliverer: Deliverer;
let receiver: Receiver;
beforeEach(async () => {
  logged.length = 0;
  prefix = uniquePrefix();
  alerts = new AlertStore(redis, prefix);
  deliverer = openDeliverer();
  receiver = await startReceiver();
});
afterEach(async () => {
  // Before the deliverer, which waits for attempts in progress.
  await receiver.close();
  await deliverer.close();
  jest.restoreAllMocks();
});
afterAll(() => redis.quit());

function openDeliverer(options: Partial<DelivererOptions> = {}): Deliverer {
  return new Deliverer({
    ...{ alerts, allowedHosts: new Set(['127.0.0.1']) },
    ...{ outboxEveryMs: 50, retryMs: 1_000, timeoutMs: 120_000 },
    metrics: createAlertMetrics(createRegistry('alerts'), alerts.deliveries),
    log: pino({}, { write: (line: string) => logged.push(JSON.parse(line)) }),
    ...options,
  });
}

/** Creates an alert with the receiver's URL, and test deliveries for it. */
async function addTests(count: number): Promise<void> {
  const alert = await alerts.create('acme', { ...ALERT_SETTINGS, url: receiver.url }, new Date());
  const body = JSON.stringify({ type: 'alert.test', data: { alertId: alert.id } });
  for (let n = 0; n < count; n += 1) await alerts.deliveries.addTest(alert, new Date(), body);
}

/** Creates an alert with the receiver's URL, and lets one of its thresholds fire. @returns the id of the delivery */
async function addCrossing(): Promise<string> {
  const alert = await alerts.create('acme', { ...ALERT_SETTINGS, url: receiver.url }, new Date());
  const body = JSON.stringify({ type: 'usage.threshold_reached', data: { alertId: alert.id, threshold: 50 } });
  await alerts.fire(alert, OCTOBER, { threshold: 50, value: '50', firedAt: new Date().toISOString() }, body);
  const [delivery] = await alerts.deliveries.listOf('acme', alert.id, new Date());
  return delivery?.id ?? '';
}

/** The due times of pending deliveries, ascending. */
async function dueTimes(): Promise<number[]> {
  const entries = await redis.zrange(`${prefix}:alert-deliveries-pending`, 0, '-1', 'WITHSCORES');
  return entries.filter((_, index) => index % 2 === 1).map(Number);
}

it('a delivery whose process died is sent once its lease has expired', async () => {
  const id = await addCrossing();
  const now = Date.now();
  const leaseUntil = now + 1_000;
  expect(await alerts.deliveries.claim(now, leaseUntil, 10)).toEqual([id]);
  deliverer.run();
  await until('it is delivered', async () => (await alerts.deliveries.find(id))?.state === 'delivered');
  expect(Date.now()).toBeGreaterThanOrEqual(leaseUntil);
  expect(receiver.received).toHaveLength(1);
});

it('two processes share the deliveries that are due, and send each of them once', async () => {
  const other = openDeliverer();
  await addTests(150);
  deliverer.run();
  other.run();
  await until('all are delivered', async () => (await alerts.deliveries.countPending()) === 0);
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(150);
  expect(receiver.received).toHaveLength(150);
  await other.close();
});

it('an account with a hanging endpoint has four attempts in progress, and its other deliveries become due 50 ms apart', async () => {
  receiver.respond = () => undefined;
  await addTests(20);
  deliverer.run();
  await until('the other 16 are due 50 ms apart', async () => {
    const times = await dueTimes();
    // One of them may be claimed at the moment.
    return times.filter((dueAt, index) => dueAt - (times[index - 1] ?? 0) === 50).length >= 14;
  });
  await until('four attempts are in progress', () => receiver.received.length === 4);
});

/** Creates an alert with the receiver's URL, and lets all its thresholds fire, the lowest first. @returns the ID of the alert */
async function addCrossings(account: string, thresholds: readonly number[]): Promise<string> {
  const alert = await alerts.create(account, { ...ALERT_SETTINGS, url: receiver.url }, new Date());
  const firedAt = new Date().toISOString();
  for (const threshold of thresholds) {
    const body = JSON.stringify({ type: 'usage.threshold_reached', data: { alertId: alert.id, threshold } });
    await alerts.fire(alert, OCTOBER, { threshold, value: '100', firedAt }, body);
  }
  return alert.id;
}

/** The thresholds of an alert's webhooks, in the order in which they arrived. */
const arrived = (id: string) =>
  receiver.received.flatMap(({ body: { data } }) => (data.alertId === id ? [data.threshold] : []));

it('the webhooks of thresholds that are crossed together arrive with the lowest threshold first', async () => {
  const thresholds = [50, 80, 90, 100];
  const ids = [await addCrossings('acme', thresholds), await addCrossings('globex', thresholds)];
  deliverer.run();
  await until('all are delivered', async () => (await alerts.deliveries.countPending()) === 0);
  for (const id of ids) expect(arrived(id)).toEqual(thresholds);
});

it('a receiver that does not respond gets the lowest threshold first, and each of the others once', async () => {
  const responses: ServerResponse[] = [];
  receiver.respond = (response) => responses.push(response);
  const id = await addCrossings('acme', [10, 20, 30, 40, 50, 60]);
  deliverer.run();
  await until('four attempts are in progress', () => responses.length === 4);
  expect(arrived(id)).toEqual([10, 20, 30, 40]);
  receiver.respond = (response) => response.writeHead(204).end();
  for (const response of responses) response.writeHead(204).end();
  await until('all are delivered', async () => (await alerts.deliveries.countPending()) === 0);
  expect(arrived(id).slice(4).sort()).toEqual([50, 60]);
});

it('a delivery that waits too long for Redis is due again a second later, before its lease ends', async () => {
  const id = await addCrossing();
  let now = Date.now();
  jest.spyOn(Date, 'now').mockImplementation(() => now);
  class SlowStore extends AlertStore {
    override find(alertId: string) {
      now += 6_000;
      return super.find(alertId);
    }
  }
  await deliverer.close();
  deliverer = openDeliverer({ alerts: new SlowStore(redis, prefix) });
  const dueAt = now + 7_000;
  deliverer.run();
  await until('it is due again', async () => (await dueTimes())[0] === dueAt);
  await deliverer.close();
  expect(receiver.received).toEqual([]);
  now = dueAt;
  deliverer = openDeliverer();
  deliverer.run();
  await until('it is delivered', async () => (await alerts.deliveries.find(id))?.state === 'delivered');
});

it('a delivery fails at once if its receiver responds 410, and waits for Retry-After, an hour at most, on 429', async () => {
  receiver.respond = (response) => response.writeHead(410).end();
  const gone = await addCrossing();
  deliverer.run();
  await until('it has failed', async () => (await alerts.deliveries.find(gone))?.state === 'failed');
  expect(await alerts.deliveries.find(gone)).toMatchObject({ attempts: 1, lastOutcome: '410' });
  receiver.respond = (response) => response.writeHead(429, { 'retry-after': '7200' }).end();
  const since = Date.now();
  const busy = await addCrossing();
  await until('it waits', async () => (await alerts.deliveries.find(busy))?.attempts === 1);
  const [dueAt = 0] = await dueTimes();
  expect(dueAt).toBeGreaterThanOrEqual(since + 3_600_000);
  expect(dueAt).toBeLessThanOrEqual(Date.now() + 3_600_000);
});

it('a message is posted as it was stored, without a signature', async () => {
  const settings = { ...ALERT_SETTINGS, format: 'slack', url: `${receiver.url}/services/T0` } as const;
  const alert = await alerts.create('acme', settings, new Date());
  const payload = JSON.stringify({ type: 'alert.test', data: { alertId: alert.id } });
  const body = JSON.stringify({ text: 'ä' });
  await alerts.deliveries.addTest(alert, new Date(), payload, body);
  deliverer.run();
  await until('it is delivered', async () => (await alerts.deliveries.countPending()) === 0);
  expect(receiver.received).toMatchObject([{ path: '/services/T0', text: body }]);
  expect(Object.keys(receiver.received[0]?.headers ?? {}).filter((name) => name.startsWith('webhook-'))).toEqual([]);
  expect(JSON.stringify(logged)).not.toContain('services/T0');
});

it('a rejected recipient fails alone and at once, one that must wait is tried again alone, and others get their mail once', async () => {
  const server = await startMailServer();
  await deliverer.close();
  deliverer = openDeliverer({ retryMs: 1, sendMail: mailSender(server.url, 'billing@example.com') });
  const [none, busy, fine] = ['none@example.com', 'busy@example.com', 'fine@example.com'];
  let waits = 3;
  server.onRecipient = (to, done) => {
    if (to === none) done(reply(550, '5.1.1 no such user'));
    else if (to === busy && waits-- > 0) done(reply(451, '4.7.1 try again'));
    else done();
  };
  const alert = await alerts.create('acme', { ...ALERT_SETTINGS, url: undefined, to: [none, busy, fine] }, new Date());
  const fired = { threshold: 50, value: '50', firedAt: new Date().toISOString() };
  const body = messageBody(alert, periodAt('month', OCTOBER), undefined, fired);
  await alerts.fire(alert, OCTOBER, fired, '{}', body);
  deliverer.run();
  await until('nothing is pending', async () => (await alerts.deliveries.countPending()) === 0);
  const ids = await alerts.deliveries.listOf('acme', alert.id, new Date());
  const found = await Promise.all(ids.map(({ id }) => alerts.deliveries.find(id)));
  expect(found.map((one) => [one?.to, one?.state, one?.attempts, one?.lastOutcome]).sort()).toEqual([
    [busy, 'delivered', 4, '250'],
    [fine, 'delivered', 1, '250'],
    [none, 'failed', 1, '550 5.1.1'],
  ]);
  expect(server.received.map(({ to }) => to).sort()).toEqual([busy, fine]);
  expect(JSON.stringify(logged)).not.toContain('@example.com');
  await server.close();
});

it('an address that was removed from the alert gets no more mails, and its delivery fails', async () => {
  const server = await startMailServer();
  await deliverer.close();
  deliverer = openDeliverer({ sendMail: mailSender(server.url, 'billing@example.com') });
  const to = ['gone@example.com', 'here@example.com'];
  const alert = await alerts.create('acme', { ...ALERT_SETTINGS, url: undefined, to }, new Date());
  await alerts.deliveries.addTest(alert, new Date(), '{}', messageBody(alert, periodAt('month', OCTOBER), undefined));
  await alerts.change(alert.id, { to: ['here@example.com'] }, new Date(), () => undefined);
  deliverer.run();
  const ended = async () => {
    const listed = await alerts.deliveries.listOf('acme', alert.id, new Date());
    return Promise.all(listed.map(({ id }) => alerts.deliveries.find(id)));
  };
  await until('both deliveries have ended', async () => (await ended()).every((each) => each?.state !== 'pending'));
  expect((await ended()).find((each) => each?.to === 'gone@example.com')).toMatchObject({
    state: 'failed',
    lastOutcome: 'the address was removed from the alert',
  });
  expect(server.received.map((mail) => mail.to)).toEqual(['here@example.com']);
  await server.close();
});

it('a failed delivery is tried again after twice the wait each time', async () => {
  receiver.respond = (response) => response.writeHead(500).end();
  const id = await addCrossing();
  const since = Date.now();
  const delivery = await alerts.deliveries.find(id);
  if (!delivery) throw new Error('no delivery');
  // Three attempts have failed before.
  await alerts.deliveries.claim(since, 0, 1);
  const attempt = { at: new Date(), outcome: '500', state: 'pending', leaseUntil: 0, dueAt: 0 } as const;
  for (let failures = 0; failures < 3; failures += 1)
    await alerts.deliveries.noteAttempt({ ...delivery, attempts: failures, failures }, attempt);
  deliverer.run();
  await until('the fourth has failed', async () => (await alerts.deliveries.find(id))?.attempts === 4);
  const [dueAt = 0] = await dueTimes();
  expect(dueAt).toBeGreaterThanOrEqual(since + 8_000);
  expect(dueAt).toBeLessThanOrEqual(Date.now() + 8_000);
});

it('a receiver that takes a second to accept a connection is reached, even if its name has another address that does not work', async () => {
  const server = spawn(process.execPath, ['-e', SLOW_SERVER], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(server, 'exit');
  const port = Number(await once(server.stdout, 'data'));
  // The stopped server accepts nothing. So the kernel drops the first packet of the third connection, and resends it after a second.
  server.kill('SIGSTOP');
  const waiting = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
  await Promise.all(waiting.map((socket) => once(socket, 'connect')));
  const lookup: LookupFunction = (_name, _options, callback) => {
    callback(null, [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]);
    setImmediate(() => server.kill('SIGCONT'));
  };
  const byDefault = getDefaultAutoSelectFamilyAttemptTimeout();
  allowSlowConnections();
  const options = { allowedHosts: new Set(['slow.example']), lookup };
  const result = await postWebhook(`http://slow.example:${port}`, '{}', {}, options);
  setDefaultAutoSelectFamilyAttemptTimeout(byDefault);
  for (const socket of waiting) socket.destroy();
  server.kill();
  await ended;
  expect(result).toEqual({ isDelivered: true, outcome: '200' });
});

it('a delivery fails after 14 attempts, and gets 14 more when it is redelivered', async () => {
  await deliverer.close();
  // The waits double from 0.01 ms, so the last one is 82 ms.
  deliverer = openDeliverer({ retryMs: 0.01 });
  receiver.respond = (response) => response.writeHead(500).end();
  const id = await addCrossing();
  const state = async () => (await alerts.deliveries.find(id))?.state;
  deliverer.run();
  await until('it has failed', async () => (await state()) === 'failed');
  expect(await alerts.deliveries.find(id)).toMatchObject({ attempts: 14, lastOutcome: '500' });
  receiver.respond = (response) => response.writeHead(receiver.received.length === 20 ? 200 : 500).end();
  await alerts.deliveries.redeliver(id);
  await until('it is delivered', async () => (await state()) === 'delivered');
  expect(receiver.received).toHaveLength(20);
  expect(new Set(receiver.received.map((one) => `${one.id} ${one.text}`)).size).toBe(1);
});

it('a deliverer whose commands Redis rejects logs it once, and tries once per interval', async () => {
  const stranger = await strangerTo(redis);
  const connection = openQueueConnection(stranger.url);
  const rejected = openDeliverer({ alerts: new AlertStore(connection, prefix), outboxEveryMs: 100 });
  const since = performance.now();
  rejected.run();
  await until('several claims are rejected', async () => (await stranger.refusals()) >= 5);
  const refusals = await stranger.refusals();
  expect(refusals - 1).toBeLessThanOrEqual((performance.now() - since) / 90);
  await rejected.close();
  connection.disconnect();
  expect(logged).toMatchObject([{ event: 'webhook_queue_error', err: { message: expect.stringContaining('NOPERM') } }]);
  await stranger.remove();
});
