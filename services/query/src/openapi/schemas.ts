/** JSON Schema out of the schemas that check what comes in and what the client reads. */
import {
  accountArraySchema,
  accountPageSchema,
  accountSchema,
  errorAnswerSchema,
  groupByEnumSchema,
  metricsAnswerSchema,
  metricsEntrySchema,
  metricsPointSchema,
  resourceTypesEnumSchema,
} from '@meterline/catalog/api';
import { z } from 'zod';
import type { JsonSchema } from './model.js';

const COMPONENTS = {
  AccountMetricsResponse: metricsAnswerSchema,
  AccountMetricsDataEntry: metricsEntrySchema,
  AccountMetricsPoint: metricsPointSchema,
  GroupByValues: groupByEnumSchema,
  ResourceTypeValues: resourceTypesEnumSchema,
  Account: accountSchema,
  AccountArray: accountArraySchema,
  AccountPage: accountPageSchema,
  Error: errorAnswerSchema,
  Health: z.object({ status: z.enum(['ok', 'ready']) }),
} as const satisfies Record<string, z.ZodType>;
export type ComponentName = keyof typeof COMPONENTS;

/** Of what stands on the wire, before anything is read into another form. */
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

/** With everything that the schema's author says of it, also where zod leaves that out because the text is read on. */
export function parameterSchema(schema: z.ZodType): { description: string; schema: JsonSchema } {
  const { description = '', ...rest } = { ...z.toJSONSchema(schema, ON_THE_WIRE), ...schema.meta() };
  return { description: String(description), schema: withoutAddress(rest) };
}

/** In the document a schema's address is its place. */
function withoutAddress({ $schema, $id, ...schema }: JsonSchema): JsonSchema {
  return schema;
}
