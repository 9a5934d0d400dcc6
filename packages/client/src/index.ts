export type {
  ApiVersion,
  BillingDimension,
  DecimalText,
  GroupByDimension,
  Resolution,
  ResourceType,
  Role,
  Unit,
} from '@meterline/catalog';
export type {
  AccountAnswer,
  ApiKeyAnswer,
  BillingDimensionAnswer,
  CreatedApiKeyAnswer,
  EventAnswer,
  EventPage,
  EventRevision,
  EventsQuery,
  FilterQuery,
  MetricsAnswer,
  MetricsEntry,
  MetricsPoint,
  MetricsQuery,
  ResourceTypesQuery,
  WindowQuery,
} from '@meterline/catalog/api';
export { formatUsage, formatUsd, percentOf } from '@meterline/catalog/questions';
export { Amount, type AmountLike, amount } from './amount.js';
export { MeterlineClient } from './client.js';
export { MeterlineConnectionError, MeterlineError } from './errors.js';
export type { GroupBy, MetricsAnswerBy, MetricsEntryBy, MetricsQueryBy } from './grouping.js';
export type {
  Fetch,
  FetchedAnswer,
  FetchInit,
  MeterlineClientOptions,
  NewApiKey,
  RequestOptions,
} from './options.js';
