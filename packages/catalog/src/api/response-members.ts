/** What the schemas of responses are made of. With `zod/mini`, as they are. */
import * as z from 'zod/mini';
import { type DecimalText, isDecimalText } from '../decimal.js';

export function amount(description: string) {
  return described(
    z.custom<DecimalText>((value) => typeof value === 'string' && isDecimalText(value), 'must be a decimal'),
    { type: 'number', minimum: 0, description },
  );
}

/** @param meta a description, or more of JSON Schema */
export function described<Schema extends z.ZodMiniType>(schema: Schema, meta: string | z.core.GlobalMeta): Schema {
  z.globalRegistry.add(schema, typeof meta === 'string' ? { description: meta } : meta);
  return schema;
}

export function wholeNumber(meta: z.core.GlobalMeta) {
  const isWhole = (value: unknown) => typeof value === 'string' && /^\d{1,15}$/.test(value);
  return z.pipe(
    described(z.custom<string>(isWhole, 'must be a whole number'), { type: 'integer', ...meta }),
    z.transform(Number),
  );
}

export function instant(description?: string) {
  return described(z.string(), { format: 'date-time', ...(description !== undefined && { description }) });
}

export function nextCursor() {
  return described(z.string(), '`cursor` of the next page; empty when there is none.');
}

export function hasMore() {
  return described(z.boolean(), 'Whether there is another page.');
}

/** A list of the management API since version 2026-04-28. Source: the API specification, section "Limits". */
export function listPage<Item extends z.ZodMiniType>(item: Item) {
  return z.object({
    data: z.array(item),
    meta: z.object({
      hasMore: hasMore(),
      nextCursor: nextCursor(),
      total: wholeNumber({ minimum: 0, description: 'Of all pages.' }),
    }),
  });
}
