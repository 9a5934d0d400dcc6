/** The filters above the figures, and what each can be set to: the catalog's words, or names that cost something. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  DIMENSIONS,
  ENTRY_FIELD,
  formatUsd,
  RESOURCE_TYPES,
  type ResourceType,
} from '@meterline/catalog';
import type { MetricsQuery } from '@meterline/client';
import { useQuery } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import {
  BILLING_DIMENSION_LABEL,
  DIMENSION_LABEL,
  RESOURCE_TYPE_LABEL,
  UNIT_LABEL,
  valueLabel,
} from '../breakdown/texts.js';
import { useSession } from '../shell/session.js';
import { navigate } from '../view/address.js';
import { type Filters, hasFilters, type View, withFilter, withGroups } from '../view/view.js';
import { type Choice, Picker } from './picker.js';

const ALL: Choice<undefined> = { value: undefined, label: 'All' };

interface FilterBarProps {
  readonly account: string;
  readonly view: View;
  readonly query: MetricsQuery;
  /** Why this caller may not choose workspaces; undefined if they may. */
  readonly workspaceReason: string | undefined;
}

export function FilterBar({ account, view, query, workspaceReason }: FilterBarProps) {
  const { filters } = view;
  const [unfolded, setUnfolded] = useState(false);
  const count = Object.keys(filters).length;
  return (
    <fieldset className="filters" data-unfolded={unfolded || undefined}>
      <legend className="sr-only">Filters</legend>
      <button type="button" className="control unfold" aria-expanded={unfolded} onClick={() => setUnfolded(!unfolded)}>
        <span className="control-label">Filters</span>
        <span className="control-value">{count === 0 ? 'None' : `${count} set`}</span>
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d={unfolded ? 'm3 7.5 3-3 3 3' : 'm3 4.500 3 3 3-3'} />
        </svg>
      </button>
      <NameFilter {...{ account, view, query }} dimension="workspace" disabledReason={workspaceReason} />
      <TypeFilter {...{ account, view, query }} />
      <NameFilter {...{ account, view, query }} dimension="resource_name" />
      <NameFilter {...{ account, view, query }} dimension="resource_uuid" />
      <Picker<BillingDimension | undefined>
        label={DIMENSION_LABEL.billing_dimension}
        shown={shownValue(filters, 'billingDimension')}
        active={filters.billingDimension !== undefined}
        choices={billingDimensionChoices(filters)}
        chosen={filters.billingDimension}
        onChoose={(value) => navigate(withFilter(view, 'billingDimension', value))}
        search={{ placeholder: 'Find a dimension' }}
      />
      {hasFilters(filters) && (
        <button type="button" className="quiet" onClick={() => navigate(withGroups(view, { filters: {} }))}>
          Clear filters
        </button>
      )}
    </fieldset>
  );
}

type FilterProps = Omit<FilterBarProps, 'workspaceReason'>;

function TypeFilter({ account, view, query }: FilterProps) {
  const [opened, setOpened] = useState(false);
  const onOpen = useCallback(() => setOpened(true), []);
  const used = useUsedResourceTypes(account, query, opened);
  const { resourceType } = view.filters;
  return (
    <Picker<ResourceType | undefined>
      label="Type"
      shown={shownValue(view.filters, 'resourceType')}
      active={resourceType !== undefined}
      choices={resourceTypeChoices(used)}
      chosen={resourceType}
      onChoose={(value) => navigate(withFilter(view, 'resourceType', value))}
      onOpen={onOpen}
    />
  );
}

/** @param used undefined: not known yet */
function resourceTypeChoices(used: readonly ResourceType[] | undefined): Choice<ResourceType | undefined>[] {
  const choices = RESOURCE_TYPES.map((value) => ({
    value,
    label: RESOURCE_TYPE_LABEL[value],
    hint: used && !used.includes(value) ? 'not used in this period' : undefined,
  }));
  return [ALL, ...choices];
}

function useUsedResourceTypes(account: string, { startTime, endTime }: MetricsQuery, enabled: boolean) {
  const { client } = useSession();
  return useQuery({
    queryKey: ['metrics', account, 'types', startTime, endTime],
    queryFn: ({ signal }) => client.resourceTypes(account, { startTime, endTime }, { signal }),
    enabled,
  }).data;
}

function billingDimensionChoices({ resourceType }: Filters): Choice<BillingDimension | undefined>[] {
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

type NameDimension = 'workspace' | 'resource_name' | 'resource_uuid';

interface NameFilterProps extends FilterProps {
  readonly dimension: NameDimension;
  readonly disabledReason?: string | undefined;
}

function NameFilter({ account, view, query, dimension, disabledReason }: NameFilterProps) {
  const [opened, setOpened] = useState(false);
  const onOpen = useCallback(() => setOpened(true), []);
  const { choices, loading } = useNameChoices(account, query, dimension, opened);
  const field = ENTRY_FIELD[dimension];
  const label = DIMENSION_LABEL[dimension];
  return (
    <Picker<string | undefined>
      label={label}
      shown={shownValue(view.filters, field)}
      active={view.filters[field] !== undefined}
      choices={choices}
      chosen={view.filters[field]}
      onChoose={(value) => navigate(withFilter(view, field, value))}
      search={{ placeholder: `Find or type: ${label.toLowerCase()}`, freeText: (text) => text }}
      loading={loading}
      disabledReason={disabledReason}
      onOpen={onOpen}
    />
  );
}

/** The names that cost something in the window under the other filters, most expensive first. Read when the list opens. */
function useNameChoices(
  account: string,
  query: MetricsQuery,
  dimension: NameDimension,
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

function shownValue(filters: Filters, field: keyof Filters): string {
  const value = filters[field];
  return value === undefined ? 'All' : valueLabel(field, value);
}
