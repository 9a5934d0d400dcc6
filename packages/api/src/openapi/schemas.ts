/**
 * JSON Schema from the zod schemas that check parameters and that clients read answers with. zod converts them itself; why
 * there is no `zod-openapi` is in docs/decisions/0012.
 */
import { z } from 'zod';
import type { JsonSchema } from './model.js';

/** The JSON or text on the wire, before a schema transforms it. */
const ON_THE_WIRE = { io: 'input', unrepresentable: 'any' } as const;

/** @param name of a schema among the components */
export function schemaReference(name: string): { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** @param components by name */
export function componentSchemas(components: Readonly<Record<string, z.core.$ZodType>>): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(components)) registry.add(schema, { id });
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
