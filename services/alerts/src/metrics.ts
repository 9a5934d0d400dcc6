/** What the alerts service measures. */

import type { DeliveryStore } from '@meterline/service/alerts';
import { instruments } from '@meterline/service/metrics';
import { inTime } from '@meterline/service/waiting';
import type { Registry } from 'prom-client';

/** A scrape has some ten seconds; the connection itself would wait for Redis for as long as it takes. */
const READ_TIMEOUT_MS = 1_500;
const TURN_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60];

export type AlertMetrics = ReturnType<typeof createAlertMetrics>;

export function createAlertMetrics(registry: Registry, deliveries: Pick<DeliveryStore, 'countPending'>) {
  const { counter, histogram, readAtScrape } = instruments(registry);
  readAtScrape(
    'meterline_webhooks_pending',
    'Webhooks of all accounts that will be tried again; absent while Redis does not answer.',
    () => inTime('Redis', deliveries.countPending(), READ_TIMEOUT_MS).catch(() => undefined),
  );
  return {
    turns: histogram(
      'meterline_alert_turn_duration_seconds',
      'How long it took to judge all alerts once; one process at a time does.',
      TURN_BUCKETS,
    ),
    failures: counter(
      'meterline_alert_failures_total',
      'Alerts that could not be judged in a turn; the next turn judges them again.',
    ),
    crossings: counter('meterline_alert_crossings_total', 'Thresholds that were found crossed.'),
    attempts: counter(
      'meterline_webhook_attempts_total',
      'Attempts to deliver a webhook: delivered; retried later; failed, the last one.',
      'outcome',
    ),
  };
}
