/** What each filter can be set to: the catalog's words, or the values that cost something in the window. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  DIMENSIONS,
  ENTRY_FIELD,
  formatUsd,
  type GroupByDimension,
  RESOURCE_TYPES,
  type ResourceType,
} from '@meterline/catalog';
import type { MetricsQuery } from '@meterline/client';
import { useQuery } from '@tanstack/react-query';
import { BILLING_DIMENSION_LABEL, RESOURCE_TYPE_LABEL, UNIT_LABEL, valueLabel } from '../breakdown/labels.js';
import { useSession } from '../session/session.js';
import type { Filters } from '../view/view.js';
import type { Choice } from './picker.js';

const ALL: Choice<undefined> = { value: undefined, label: 'All' };

/** @param used undefined: not known yet */
export function resourceTypeChoices(used: readonly ResourceType[] | undefined): Choice<ResourceType | undefined>[] {
  const choices = RESOURCE_TYPES.map((value) => ({
    value,
    label: RESOURCE_TYPE_LABEL[value],
    hint: used && !used.includes(value) ? 'not used in this period' : undefined,
  }));
  return [ALL, ...choices];
}

export function billingDimensionChoices({ resourceType }: Filters): Choice<BillingDimension | undefined>[] {
  const choices = BILLING_DIMENSIONS.map((value) => {
    const { resourceType: of, unit } = DIMENSIONS[value];
    const fits = resourceType === undefined || of === resourceType;
    return {
      value,
      label: BILLING_DIMENSION_LABEL[value],
      hint: UNIT_LABEL[unit],
      disabledReason: fits || !resourceType ? undefined : `Not of ${RESOURCE_TYPE_LABEL[resourceType]}.`,
    };
  });
  return [
    ALL,
    ...choices.filter((choice) => !choice.disabledReason),
    ...choices.filter((choice) => choice.disabledReason),
  ];
}

/** Names by what they cost in the window, under the other filters; asked for when the list is opened. */
export function useNameChoices(
  account: string,
  query: MetricsQuery,
  dimension: GroupByDimension,
  enabled: boolean,
): { choices: Choice<string | undefined>[]; loading: boolean } {
  const { client } = useSession();
  const field = ENTRY_FIELD[dimension];
  const { [field]: _own, ...others } = query;
  const { data, isFetching } = useQuery({
    queryKey: ['metrics', account, 'names', others, dimension],
    queryFn: ({ signal }) =>
      client.metrics(account, { ...others, groupBy: [dimension], resolution: 'monthly' }, { signal }),
    enabled,
  });
  const found = (data?.data ?? []).map((entry) => {
    const value = entry[field] ?? '';
    return { value, label: valueLabel(field, value), hint: formatUsd(entry.summary.cost) };
  });
  return { choices: [ALL, ...found], loading: isFetching };
}

export function useUsedResourceTypes(account: string, { startTime, endTime }: MetricsQuery, enabled: boolean) {
  const { client } = useSession();
  return useQuery({
    queryKey: ['metrics', account, 'types', startTime, endTime],
    queryFn: ({ signal }) => client.resourceTypes(account, { startTime, endTime }, { signal }),
    enabled,
  }).data;
}
