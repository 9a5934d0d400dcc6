import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  connect,
  getDefaultAutoSelectFamilyAttemptTimeout,
  type LookupFunction,
  setDefaultAutoSelectFamilyAttemptTimeout,
} from 'node:net';
import { afterAll, afterEach, beforeEach, expect, it } from '@jest/globals';
import { AlertStore } from '@meterline/service/alerts';
import { allowSlowConnections } from '@meterline/service/connecting';
import { createRegistry } from '@meterline/service/metrics';
import { openQueueConnection } from '@meterline/service/queue';
import { Worker } from 'bullmq';
import { pino } from 'pino';
import { ALERT_SETTINGS, type Receiver, startReceiver } from '../../../test/harness/alerts.js';
import { strangerTo } from '../../../test/harness/queue.js';
import { testRedisUrl, uniquePrefix } from '../../../test/harness/stack.js';
import { until } from '../../../test/harness/waiting.js';
import { Deliverer, type DelivererOptions, post } from './deliverer.js';
import { createAlertMetrics } from './metrics.js';

const QUEUE = 'meterline-webhooks';
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
  // Attempts in work would be waited for.
  await receiver.close();
  await deliverer.close();
});
afterAll(() => redis.quit());

function openDeliverer(options: Partial<DelivererOptions> = {}): Deliverer {
  return new Deliverer({
    ...{ connection: redis, prefix, alerts, allowedHosts: new Set(['127.0.0.1']) },
    ...{ outboxEveryMs: 50, retryMs: 1_000, lockMs: 30_000, timeoutMs: 120_000 },
    metrics: createAlertMetrics(createRegistry('alerts'), alerts.deliveries),
    log: pino({}, { write: (line: string) => logged.push(JSON.parse(line)) }),
    ...options,
  });
}

/** Makes an alert for the receiver, and webhooks of tests of it. */
async function addTests(count: number): Promise<void> {
  const alert = await alerts.create('acme', { ...ALERT_SETTINGS, url: receiver.url }, new Date());
  const body = JSON.stringify({ type: 'alert.test', data: { alertId: alert.id } });
  for (let n = 0; n < count; n += 1) await alerts.deliveries.addTest(alert, new Date(), body);
}

/** Makes an alert for the receiver, and lets a threshold of it fire. @returns the id of its webhook */
async function addCrossing(): Promise<string> {
  const alert = await alerts.create('acme', { ...ALERT_SETTINGS, url: receiver.url }, new Date());
  const body = JSON.stringify({ type: 'usage.threshold_reached', data: { alertId: alert.id, threshold: 50 } });
  await alerts.fire(alert, OCTOBER, { threshold: 50, value: '50', firedAt: new Date().toISOString() }, body);
  const [delivery] = await alerts.deliveries.listOf('acme', alert.id, new Date());
  return delivery?.id ?? '';
}

it('a webhook that is wanted again while its job is in work has another job as soon as that has ended', async () => {
  const worker = new Worker(QUEUE, null, { connection: redis, prefix, autorun: false });
  const now = new Date();
  const alert = await alerts.create('acme', ALERT_SETTINGS, now);
  const { id } = await alerts.deliveries.addTest(alert, now, '{}');
  await deliverer.addJobs(now);
  expect(await alerts.deliveries.due(now, 10)).toEqual([]);
  const first = await worker.getNextJob('first');
  expect(first?.id).toBe(id);

  await alerts.deliveries.sendAgain(id);
  await deliverer.addJobs(now);
  expect(await alerts.deliveries.due(now, 10)).toEqual([{ id, atOnce: true }]);
  await first?.moveToCompleted(undefined, 'first', false);
  await deliverer.addJobs(now);
  expect((await worker.getNextJob('second'))?.id).toBe(id);
  expect(await alerts.deliveries.due(now, 10)).toEqual([]);
  await worker.close();
});

it('webhooks of an account whose receiver hangs wait for their next look, 50 ms apart, however many there are', async () => {
  receiver.respond = () => undefined;
  await addTests(20);
  deliverer.run();
  const looks = async () => {
    const events = await redis.xrange(`${prefix}:${QUEUE}:events`, '-', '+');
    return events.flatMap(([, fields]) =>
      fields.includes('delayed') ? [Number(fields[fields.indexOf('delay') + 1])] : [],
    );
  };
  await until('four are in work, and all others wait', async () => {
    return receiver.received.length >= 4 && (await looks()).length >= 16;
  });
  const times = await looks();
  expect(receiver.received).toHaveLength(4);
  const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(50);
});

it('a webhook whose receiver is gone (410) has failed, and one whose receiver is busy waits as long as that wants', async () => {
  receiver.respond = (response) => response.writeHead(410).end();
  const gone = await addCrossing();
  deliverer.run();
  await until('it has failed', async () => (await alerts.deliveries.find(gone))?.state === 'failed');
  expect(await alerts.deliveries.find(gone)).toMatchObject({ attempts: 1, lastOutcome: '410' });
  receiver.respond = (response) => response.writeHead(429, { 'retry-after': '7200' }).end();
  const busy = await addCrossing();
  const delay = async () => Number(await redis.hget(`${prefix}:${QUEUE}:${busy}`, 'delay'));
  await until('it waits', async () => (await delay()) > 0);
  // At most an hour.
  expect(await delay()).toBe(3_600_000);
  const inAnHour = Date.now() + 3_600_000;
  expect(await alerts.deliveries.due(new Date(inAnHour), 10)).toEqual([]);
  expect(await alerts.deliveries.due(new Date(inAnHour + 6 * 60_000), 10)).toHaveLength(1);
});

it('a receiver that takes a second to connect is reached, though its name has another address that does not work', async () => {
  const server = spawn(process.execPath, ['-e', SLOW_SERVER], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(server, 'exit');
  const port = Number(await once(server.stdout, 'data'));
  // It accepts no connection, so the system drops the first packet of the third, and sends it again after a second.
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
  const outcome = await post(`http://slow.example:${port}`, '{}', {}, options);
  setDefaultAutoSelectFamilyAttemptTimeout(byDefault);
  for (const socket of waiting) socket.destroy();
  server.kill();
  await ended;
  expect(outcome).toEqual({ isDelivered: true, text: '200' });
});

it('a webhook has failed after 14 attempts, and has as many again when somebody wants it sent', async () => {
  await deliverer.close();
  // The last of the waits, each twice as long as the one before, has 82 ms.
  deliverer = openDeliverer({ retryMs: 0.01 });
  receiver.respond = (response) => response.writeHead(500).end();
  const id = await addCrossing();
  const state = async () => (await alerts.deliveries.find(id))?.state;
  deliverer.run();
  await until('it has failed', async () => (await state()) === 'failed');
  expect(await alerts.deliveries.find(id)).toMatchObject({ attempts: 14, lastOutcome: '500' });
  receiver.respond = (response) => response.writeHead(receiver.received.length === 20 ? 200 : 500).end();
  await alerts.deliveries.sendAgain(id);
  await until('it is delivered', async () => (await state()) === 'delivered');
  expect(receiver.received).toHaveLength(20);
  expect(new Set(receiver.received.map((one) => `${one.id} ${one.text}`)).size).toBe(1);
});

it('a deliverer whose queue Redis refuses logs it once, and tries again only with the next turn', async () => {
  const stranger = await strangerTo(redis);
  const connection = openQueueConnection(stranger.url);
  const refused = openDeliverer({ connection, outboxEveryMs: 100 });
  const since = performance.now();
  refused.run();
  await until('several turns were refused', async () => (await stranger.refusals()) >= 5);
  const refusals = await stranger.refusals();
  // The first time also for the queue itself.
  expect(refusals - 2).toBeLessThanOrEqual((performance.now() - since) / 90);
  await refused.close();
  connection.disconnect();
  expect(logged).toMatchObject([{ event: 'webhook_queue_error', err: { message: expect.stringContaining('NOPERM') } }]);
  await stranger.remove();
});
