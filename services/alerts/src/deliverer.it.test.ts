import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, expect, it } from '@jest/globals';
import { AlertStore } from '@meterline/service/alerts';
import { createRegistry } from '@meterline/service/metrics';
import { openQueueConnection } from '@meterline/service/queue';
import { Worker } from 'bullmq';
import { pino } from 'pino';
import { ALERT_SETTINGS, startReceiver } from '../../../test/harness/alerts.js';
import { strangerTo } from '../../../test/harness/queue.js';
import { testRedisUrl, uniquePrefix } from '../../../test/harness/stack.js';
import { until } from '../../../test/harness/waiting.js';
import { Deliverer, type DelivererOptions } from './deliverer.js';
import { createAlertMetrics } from './metrics.js';

const QUEUE = 'meterline-webhooks';

const redis = openQueueConnection(testRedisUrl());
const logged: object[] = [];
let prefix: string;
let alerts: AlertStore;
let deliverer: Deliverer;
beforeEach(() => {
  logged.length = 0;
  prefix = uniquePrefix();
  alerts = new AlertStore(redis, prefix);
  deliverer = openDeliverer();
});
afterEach(() => deliverer.close());
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

it('of the webhooks of an account whose receiver hangs, at most twenty a second are looked at, however many wait', async () => {
  const receiver = await startReceiver();
  receiver.respond = () => undefined;
  const alert = await alerts.create('acme', { ...ALERT_SETTINGS, url: receiver.url }, new Date());
  const body = JSON.stringify({ type: 'alert.test', data: { alertId: alert.id } });
  for (let n = 0; n < 100; n += 1) await alerts.deliveries.addTest(alert, new Date(), body);
  const since = Date.now();
  deliverer.run();
  const looks = async () => {
    const events = await redis.xrange(`${prefix}:${QUEUE}:events`, '-', '+');
    return events.filter(([, fields]) => fields.join(' ').includes('event delayed')).length;
  };
  await until('all have been looked at, and some again', async () => (await looks()) > 140);
  const [count, seconds, posts] = [await looks(), (Date.now() - since) / 1_000, receiver.received.length];
  await receiver.close();
  expect(count).toBeLessThan(100 + 20 * seconds);
  expect(posts).toBe(4);
});

it('a deliverer says that Redis refuses its queue, and does not ask again and again', async () => {
  const stranger = await strangerTo(redis);
  const connection = openQueueConnection(stranger.url);
  const refused = openDeliverer({ connection, outboxEveryMs: 100 });
  refused.run();
  await until('it has said so', async () => logged.length > 0);
  await delay(500);
  await refused.close();
  connection.disconnect();
  expect(await stranger.refusals()).toBeLessThan(20);
  expect(logged).toMatchObject([{ event: 'webhook_queue_error', err: { message: expect.stringContaining('NOPERM') } }]);
  await stranger.remove();
});
