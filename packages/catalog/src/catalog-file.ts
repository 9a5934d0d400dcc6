/** Parses catalog files, which contain the billing dimensions that a platform adds to the built-in ones. */
import * as z from 'zod';
import { MAX_METRICS_PAGE } from './api/request.js';
import {
  BUILT_IN_DIMENSION_NAMES,
  BUILT_IN_DIMENSIONS,
  isNameOf,
  isResourceTypeName,
  isUnitName,
  MAX_CODE_LENGTH,
  type NamedDimension,
} from './dimensions.js';
import { describeIssue } from './price-book.js';

/** Limits the dimensions that a platform adds, so that a response has all of them on one page, and an error message can list them. */
const MAX_ADDED = MAX_METRICS_PAGE - BUILT_IN_DIMENSION_NAMES.length;

const NAME_RULE = `must be lowercase words joined by underscores, such as mcp_server, with at most ${MAX_CODE_LENGTH} characters`;
const name = (rule: string, isValid: (text: string) => boolean) => z.string(rule).refine(isValid, rule);

const dimensionSchema = z
  .strictObject({
    billingDimension: name(NAME_RULE, isResourceTypeName),
    resourceType: name(NAME_RULE, isResourceTypeName),
    unit: name(`must be a lowercase word such as seconds, with at most ${MAX_CODE_LENGTH} letters`, isUnitName),
  })
  .superRefine((dimension, context) => {
    const { billingDimension, resourceType, unit } = dimension;
    const problem = (message: string) => context.addIssue({ code: 'custom', path: ['billingDimension'], message });
    if (Object.hasOwn(BUILT_IN_DIMENSIONS, billingDimension)) {
      problem(`${billingDimension} is built in, and cannot be redefined; remove it, or choose another name`);
    } else if (!isNameOf(dimension, billingDimension)) {
      problem(
        `must start with the resource type and end with the unit, such as ${resourceType}_<what>_${unit}, because readers take the unit from the name`,
      );
    }
  });

const catalogSchema = z.strictObject({
  dimensions: z
    .array(dimensionSchema, 'must be an array')
    .max(MAX_ADDED, `must have at most ${MAX_ADDED} dimensions`)
    .superRefine((dimensions, context) => {
      const names = dimensions.map(({ billingDimension }) => billingDimension);
      for (const [index, each] of names.entries()) {
        if (names.indexOf(each) === index) continue;
        const message = `${each} is defined twice; keep one`;
        context.addIssue({ code: 'custom', path: [index, 'billingDimension'], message });
      }
    }),
});

/** Thrown if a catalog file is unusable. The message lists every error with its position. */
export class CatalogError extends Error {
  override readonly name = 'CatalogError';
}

/** @throws CatalogError */
export function parseCatalog(input: unknown): readonly NamedDimension[] {
  const catalog = catalogSchema.safeParse(input);
  if (catalog.success) return catalog.data.dimensions;
  throw new CatalogError(catalog.error.issues.map(describeIssue).join('; '));
}
