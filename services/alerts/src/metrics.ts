import type { DeliveryStore } from '@meterline/service/alerts';
import { instruments } from '@meterline/service/metrics';
import { inTime } from '@meterline/service/waiting';
import type { Registry } from 'prom-client';

/** Shorter than the timeout of a scrape, about 10 s. Without this timeout, a read would wait until Redis is back. */
const READ_TIMEOUT_MS = 1_500;
const RUN_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60];

export type AlertMetrics = ReturnType<typeof createAlertMetrics>;

export function createAlertMetrics(registry: Registry, deliveries: Pick<DeliveryStore, 'countPending'>) {
  const { counter, histogram, readAtScrape } = instruments(registry);
  readAtScrape(
    'meterline_webhooks_pending',
    'Webhooks, messages and e-mails waiting for an attempt, over all accounts. Absent while Redis is unavailable.',
    () => inTime('Redis', deliveries.countPending(), READ_TIMEOUT_MS).catch(() => undefined),
  );
  return {
    runs: histogram(
      'meterline_alert_turn_duration_seconds',
      'Duration of one evaluation of all alerts. One process at a time evaluates.',
      RUN_BUCKETS,
    ),
    failures: counter(
      'meterline_alert_failures_total',
      'Alerts that could not be evaluated. The next evaluation tries again.',
    ),
    crossings: counter('meterline_alert_crossings_total', 'Crossed thresholds.'),
    attempts: counter(
      'meterline_webhook_attempts_total',
      'Attempts to deliver a webhook, a message or an e-mail: delivered, retried (another attempt follows) or failed (no attempt follows).',
      'outcome',
    ),
  };
}
