import { afterAll, expect, it } from '@jest/globals';
import { AlertStore } from '@meterline/service/alerts';
import { createRegistry } from '@meterline/service/metrics';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import pino from 'pino';
import { ALERT_SETTINGS } from '../../../test/harness/alerts.js';
import { testRedisUrl, uniquePrefix } from '../../../test/harness/stack.js';
import { Deliverer } from './deliverer.js';
import { createAlertMetrics } from './metrics.js';

const redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
const prefix = uniquePrefix();
const alerts = new AlertStore(redis, prefix);
const deliverer = new Deliverer({
  ...{ connection: redis, prefix, alerts, allowedHosts: new Set<string>() },
  ...{ outboxEveryMs: 1_000, retryMs: 1_000, lockMs: 30_000 },
  metrics: createAlertMetrics(createRegistry('alerts'), alerts.deliveries),
  log: pino({ level: 'silent' }),
});
const worker = new Worker('meterline-webhooks', null, { connection: redis, prefix, autorun: false });
afterAll(async () => {
  await worker.close();
  await deliverer.close();
  await redis.quit();
});

it('a webhook that is wanted again while its job is in work has another job as soon as that has ended', async () => {
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
});
