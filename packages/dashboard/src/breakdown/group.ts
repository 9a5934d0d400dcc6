/** A group: one combination of the values of the dimensions that the view is broken down by. */
import { type BillingDimension, ENTRY_FIELD, type GroupByDimension, type ResourceType } from '@meterline/catalog';
import { valueLabel } from './labels.js';

export interface GroupValues {
  readonly workspace?: string | undefined;
  readonly resourceType?: ResourceType | undefined;
  readonly resourceName?: string | undefined;
  readonly resourceUuid?: string | undefined;
  readonly billingDimension?: BillingDimension | undefined;
}

/** The same for the same group in any window. */
export function groupKey(values: GroupValues, groupBy: readonly GroupByDimension[]): string {
  return JSON.stringify(groupBy.map((dimension) => values[ENTRY_FIELD[dimension]] ?? null));
}

/** One label a dimension, in the order of the breakdown. */
export function groupLabels(values: GroupValues, groupBy: readonly GroupByDimension[]): string[] {
  return groupBy.map((dimension) => {
    const field = ENTRY_FIELD[dimension];
    return valueLabel(field, values[field] ?? '');
  });
}

export function groupLabel(values: GroupValues, groupBy: readonly GroupByDimension[]): string {
  return groupLabels(values, groupBy).join(' · ') || 'Everything';
}
