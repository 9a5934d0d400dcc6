/**
 * JSON Schema from the zod schemas that check parameters and that clients read answers with. zod converts them itself; why
 * there is no `zod-openapi` is in docs/decisions/0012.
 */
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
import type { JsonSchema } from './model.js';

const COMPONENTS = {
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
  ProtectedResource: z.object({
    resource: z
      .string()
      .meta({ description: 'The API, for the parameter `resource` of a request for a token (RFC 8707).' }),
    authorization_servers: z.array(z.string()).optional().meta({ description: 'Who issues tokens for it.' }),
    scopes_supported: z.array(z.string()),
    bearer_methods_supported: z.array(z.string()),
    resource_name: z.string(),
    resource_documentation: z.string(),
  }),
  Error: errorAnswerSchema,
  Health: z.object({
    status: z.enum(['ok', 'ready']),
    degraded: z.array(z.object({ server: z.string(), message: z.string() })).optional(),
  }),
} as const satisfies Record<string, z.core.$ZodType>;
export type ComponentName = keyof typeof COMPONENTS;

/** The JSON or text on the wire, before a schema transforms it. */
const ON_THE_WIRE = { io: 'input', unrepresentable: 'any' } as const;

export function reference(name: ComponentName): { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

export function componentSchemas(): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(COMPONENTS)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { ...ON_THE_WIRE, uri: (id) => `#/components/schemas/${id}` });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutAddress(schema)]));
}

/** With all of the schema's `meta`: zod leaves some of it out (`default`) where a schema transforms its input. */
export function parameterSchema(schema: z.ZodType): { description: string; schema: JsonSchema } {
  const { description = '', ...rest } = { ...z.toJSONSchema(schema, ON_THE_WIRE), ...schema.meta() };
  return { description: String(description), schema: withoutAddress(rest) };
}

/** A schema in the document is identified by its place there. */
function withoutAddress({ $schema, $id, ...schema }: JsonSchema): JsonSchema {
  return schema;
}
