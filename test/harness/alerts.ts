/** What the alerts of tests are about, unless they say otherwise. */
import type { AlertSettings } from '@meterline/service/alerts';

export const ALERT_SETTINGS: AlertSettings = {
  name: 'Monthly spend',
  period: 'month',
  measure: 'cost',
  amount: '100',
  thresholds: [50, 80, 100],
  filters: {},
  url: 'https://example.com/hooks',
};
