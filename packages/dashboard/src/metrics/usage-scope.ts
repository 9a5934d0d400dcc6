/** Whether usage means anything in a view: it adds up only where there is one unit. */
import { BILLING_DIMENSIONS, type BillingDimension, DIMENSIONS, type Unit } from '@meterline/catalog';
import { UNIT_LABEL } from '../breakdown/labels.js';
import type { Filters, View } from '../view/view.js';

const LIST = new Intl.ListFormat('en-GB');

export type UsageScope = { readonly unit: Unit } | { readonly unit: undefined; readonly reason: string };

/** The billing dimensions that the filters leave. */
export function dimensionsLeft({ billingDimension, resourceType }: Filters): readonly BillingDimension[] {
  return BILLING_DIMENSIONS.filter(
    (dimension) =>
      (billingDimension === undefined || dimension === billingDimension) &&
      (resourceType === undefined || DIMENSIONS[dimension].resourceType === resourceType),
  );
}

export function usageScope({ filters, groupBy }: Pick<View, 'filters' | 'groupBy'>): UsageScope {
  const dimensions = dimensionsLeft(filters);
  const units = [...new Set<Unit>(dimensions.map((dimension) => DIMENSIONS[dimension].unit))];
  const [unit, ...others] = units;
  if (unit && others.length === 0 && (dimensions.length === 1 || groupBy.includes('billing_dimension')))
    return { unit };
  if (others.length === 0)
    return { unit: undefined, reason: 'Group by billing dimension, or choose one, to see usage.' };
  const mixed = LIST.format(units.map((each) => UNIT_LABEL[each]));
  return {
    unit: undefined,
    reason: `Usage adds up only in one unit, and this mixes ${mixed}. Choose a billing dimension to see it.`,
  };
}
