/** The schemas of answers and bodies, by the names that they have in the document. */
import { protectedResourceSchema, schemaReference } from '@meterline/api';
import {
  accountArraySchema,
  accountPageSchema,
  accountSchema,
  apiKeyArraySchema,
  apiKeyPageSchema,
  apiKeySchema,
  billingDimensionsEnumSchema,
  createdApiKeySchema,
  errorAnswerSchema,
  eventPageSchema,
  eventRevisionSchema,
  eventSchema,
  groupByEnumSchema,
  metricsAnswerSchema,
  metricsEntrySchema,
  metricsPointSchema,
  newApiKeySchema,
  resourceTypesEnumSchema,
} from '@meterline/catalog/api';
import { z } from 'zod';

export const COMPONENTS = {
  AccountMetricsResponse: metricsAnswerSchema,
  AccountMetricsDataEntry: metricsEntrySchema,
  AccountMetricsPoint: metricsPointSchema,
  EventPage: eventPageSchema,
  Event: eventSchema,
  EventRevision: eventRevisionSchema,
  GroupByValues: groupByEnumSchema,
  ResourceTypeValues: resourceTypesEnumSchema,
  BillingDimensionValues: billingDimensionsEnumSchema,
  Account: accountSchema,
  AccountArray: accountArraySchema,
  AccountPage: accountPageSchema,
  ApiKey: apiKeySchema,
  ApiKeyArray: apiKeyArraySchema,
  ApiKeyPage: apiKeyPageSchema,
  NewApiKey: newApiKeySchema,
  CreatedApiKey: createdApiKeySchema,
  ProtectedResource: protectedResourceSchema,
  Error: errorAnswerSchema,
  Health: z.object({
    status: z.enum(['ok', 'ready']),
    degraded: z.array(z.object({ server: z.string(), message: z.string() })).optional(),
  }),
} as const satisfies Record<string, z.core.$ZodType>;
type ComponentName = keyof typeof COMPONENTS;

export function reference(name: ComponentName) {
  return schemaReference(name);
}
