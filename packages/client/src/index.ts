export type {
  AccountAnswer,
  MetricsAnswer,
  MetricsEntry,
  MetricsPoint,
  MetricsQuery,
  WindowQuery,
} from '@meterline/catalog/api';
export { MeterlineClient, type MeterlineClientOptions, type RequestOptions } from './client.js';
export { MeterlineConnectionError, MeterlineError } from './errors.js';
