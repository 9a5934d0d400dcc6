import * as z from 'zod';

/** `limit`: decimal digits, at least 1; above the maximum it is clamped silently. Source: the API specification, "Limits". */
export function pageSize(maximum: number) {
  const rule = `must be a whole number from 1 to ${maximum}, in digits`;
  return z
    .string()
    .refine((text) => /^\d+$/.test(text), { error: rule, abort: true })
    .transform((digits) => Math.min(Number(digits), maximum))
    .refine((limit) => limit >= 1, rule)
    .meta({ type: 'integer', minimum: 1 });
}
