export type {
  AccountAnswer,
  AlertAnswer,
  AlertWithSecretAnswer,
  ApiKeyAnswer,
  ApiVersion,
  BillingDimension,
  BillingDimensionAnswer,
  CreatedApiKeyAnswer,
  DecimalText,
  DeliveryAnswer,
  EventAnswer,
  EventPage,
  EventRevision,
  EventsQuery,
  FilterQuery,
  GroupByDimension,
  MetricsAnswer,
  MetricsDimension,
  MetricsEntry,
  MetricsPoint,
  MetricsQuery,
  Resolution,
  ResourceType,
  ResourceTypesQuery,
  Role,
  Unit,
  WindowQuery,
} from '@meterline/catalog';
export { formatUsage, formatUsd, type RejectedEvent, shareText } from '@meterline/catalog/plain';
export type { AlertChangeBody, NewAlertBody } from './alerts.js';
export { Amount, amount } from './amount.js';
export type { EventsReceipt, Fetch, FetchedAnswer } from './answers.js';
export { MeterlineConnectionError, MeterlineError } from './answers.js';
export type { AllMetricsOptions, NewApiKey, PagesOptions } from './client.js';
export { MeterlineClient } from './client.js';
export type { GroupBy, MetricsAnswerBy, MetricsEntryBy, MetricsQueryBy } from './grouping.js';
export type { MeterlineClientOptions, RequestOptions } from './transport.js';
export { ALL_ACCOUNTS, metricsPath, questionString } from './transport.js';
