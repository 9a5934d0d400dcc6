export { outageGauge } from './outage-gauge.js';
export { createRegistry } from './registry.js';
export { StatementMetrics } from './statement-metrics.js';
