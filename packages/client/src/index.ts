export type {
  AccountResponse,
  AlertResponse,
  AlertWithSecretResponse,
  ApiKeyResponse,
  BillingDimension,
  BillingDimensionResponse,
  CreatedApiKeyResponse,
  DecimalText,
  DeliveryResponse,
  EventPage,
  EventResponse,
  EventRevision,
  EventsQuery,
  FilterQuery,
  GroupByDimension,
  MetricsDimension,
  MetricsEntry,
  MetricsPoint,
  MetricsQuery,
  MetricsResponse,
  Resolution,
  ResourceType,
  ResourceTypesQuery,
  Role,
  SavedViewResponse,
  Unit,
  WindowQuery,
} from '@meterline/catalog';
export { formatUsage, formatUsd, type RejectedEvent, shareText } from '@meterline/catalog/plain';
export type { AlertChangeBody, NewAlertBody } from './alerts.js';
export { type AllEventsOptions, allEvents } from './all-events.js';
export { Amount, amount } from './amount.js';
export type { AllMetricsOptions, NewApiKey, PageOptions, PagesOptions } from './client.js';
export { MeterlineClient } from './client.js';
export { eventsCsv } from './events-csv.js';
export type { GroupBy, MetricsEntryBy, MetricsQueryBy, MetricsResponseBy } from './grouping.js';
export { filteredByGroups, type GroupValues, queriesOfGroups } from './groups.js';
export type { EventsReceipt, Fetch, FetchedResponse } from './responses.js';
export { MeterlineConnectionError, MeterlineError } from './responses.js';
export type { MeterlineClientOptions, RequestOptions } from './transport.js';
export { ALL_ACCOUNTS, MAX_RESTARTS, metricsPath, queryString } from './transport.js';
