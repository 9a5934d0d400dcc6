/** What the alerts service measures. */
import type { DeliveryStore } from '@meterline/service/alerts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

const TURN_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60];

export type AlertMetrics = ReturnType<typeof createAlertMetrics>;

export function createAlertMetrics(registry: Registry, deliveries: Pick<DeliveryStore, 'countPending'>) {
  const registers = [registry];
  new Gauge({
    name: 'meterline_webhooks_pending',
    help: 'Webhooks of all accounts that are not delivered yet and will be tried again.',
    registers,
    async collect() {
      this.set(await deliveries.countPending());
    },
  });
  return {
    turns: new Histogram({
      name: 'meterline_alert_turn_duration_seconds',
      help: 'How long it took to judge all alerts once; one process at a time does.',
      buckets: TURN_BUCKETS,
      registers,
    }),
    failures: new Counter({
      name: 'meterline_alert_failures_total',
      help: 'Alerts that could not be judged in a turn; the next turn judges them again.',
      registers,
    }),
    crossings: new Counter({
      name: 'meterline_alert_crossings_total',
      help: 'Thresholds that were found crossed.',
      registers,
    }),
    attempts: new Counter({
      name: 'meterline_webhook_attempts_total',
      help: 'Attempts to deliver a webhook: delivered; retried later; failed, the last one.',
      labelNames: ['outcome'],
      registers,
    }),
  };
}
