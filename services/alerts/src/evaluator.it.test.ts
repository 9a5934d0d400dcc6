import { afterAll, expect, it } from '@jest/globals';
import { bucketAxis, MS_PER_HOUR, monthWindow } from '@meterline/catalog';
import { AlertStore } from '@meterline/service/alerts';
import { createRegistry } from '@meterline/service/metrics';
import { openQueueConnection } from '@meterline/service/queue';
import { rollupStateReader } from '@meterline/warehouse';
import { pino } from 'pino';
import { ALERT_SETTINGS } from '../../../test/harness/alerts.js';
import { pricedEvent } from '../../../test/harness/events.js';
import { recomputeAll, storeEvents, testRedisUrl, uniquePrefix } from '../../../test/harness/stack.js';
import { testDatabase } from '../../../test/harness/test-database.js';
import { Evaluator } from './evaluator.js';
import { createAlertMetrics } from './metrics.js';

/** A Sunday. */
const NOW = Date.parse('2026-11-22T06:00:00Z');
const TODAY = Date.parse('2026-11-22T00:00:00Z');

const database = testDatabase();
const redis = openQueueConnection(testRedisUrl());
afterAll(() => redis.quit());

it('the forecast of usage and of cost is that of the page, over the filters of the alert, and fires once as the clock moves', async () => {
  const { warehouse } = database;
  const alerts = new AlertStore(redis, uniquePrefix());
  const days = bucketAxis(monthWindow(NOW), 'daily');
  // Working days cost 10 and weekends 2. Events of another sandbox and of another account do not count.
  const costOf = (day: number) => (new Date(day).getUTCDay() % 6 === 0 ? 2n : 10n);
  const events = days.flatMap((day) =>
    [{}, { resourceName: 'other' }, { accountId: 'globex' }].map((change) =>
      pricedEvent({ timestamp: day + MS_PER_HOUR, cost: costOf(day) * 10n ** 12n, usage: 3n * 10n ** 9n, ...change }),
    ),
  );
  await storeEvents(warehouse, events);
  await recomputeAll(warehouse);
  const filters = { resourceName: ['builder'], billingDimension: ['sandbox_compute_runtime_gbs' as const] };
  const definition = { ...ALERT_SETTINGS, filters, thresholds: [], forecast: [50, 100], url: undefined };
  const [cost, usage] = [
    await alerts.create('acme', { ...definition, amount: '228', to: ['a@example.com'] }, new Date(NOW)),
    await alerts.create(
      'acme',
      { ...definition, measure: 'usage', amount: '180', to: ['a@example.com'] },
      new Date(NOW),
    ),
  ];
  const evaluator = new Evaluator({
    ...{ alerts, warehouse, readRollupState: rollupStateReader(warehouse) },
    metrics: createAlertMetrics(createRegistry('alerts'), alerts.deliveries),
    log: pino({ enabled: false }),
  });
  for (let hour = 0; hour < 24; hour += 6) await evaluator.evaluateAll(new Date(TODAY + hour * MS_PER_HOUR));

  const november = Date.UTC(2026, 10);
  // See packages/catalog/src/forecast.test.ts.
  const costs = { value: '164', forecast: '228', firedAt: new Date(TODAY).toISOString() };
  expect(await alerts.firedOf(cost, november)).toEqual([
    { threshold: 50, ...costs },
    { threshold: 100, ...costs },
  ]);
  // Each of the 30 days has a usage of 3: 22 of them until today.
  expect(await alerts.firedOf(usage, november)).toMatchObject([{ threshold: 50, value: '66', forecast: '90' }]);
  const ids = await alerts.deliveries.listOf('acme', cost.id, new Date(NOW));
  const found = await Promise.all(ids.map(({ id }) => alerts.deliveries.find(id)));
  expect(found.map((one) => one?.type)).toEqual(['usage.forecast_reached', 'usage.forecast_reached']);
  expect(found.map((one) => JSON.parse(one?.payload ?? '').data.threshold).sort()).toEqual([100, 50]);
  for (const one of found) expect(one?.body).toContain('This is a forecast: by the end of November 2026');
});
