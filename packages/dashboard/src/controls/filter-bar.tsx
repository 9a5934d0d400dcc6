import type { BillingDimension, ResourceType } from '@meterline/catalog';
import type { MetricsQuery } from '@meterline/client';
import { useCallback, useState } from 'react';
import { DIMENSION_LABEL, valueLabel } from '../breakdown/labels.js';
import { type Filters, hasFilters, type View, withFilter, withGroups } from '../view/view.js';
import {
  billingDimensionChoices,
  resourceTypeChoices,
  useNameChoices,
  useUsedResourceTypes,
} from './filter-choices.js';
import { Picker } from './picker.js';

export interface FilterBarProps {
  readonly account: string;
  readonly view: View;
  readonly query: MetricsQuery;
  readonly navigate: (view: View) => void;
  /** Why workspaces are not for this caller. */
  readonly workspaceReason: string | undefined;
}

export function FilterBar({ account, view, query, navigate, workspaceReason }: FilterBarProps) {
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
      <NameFilter {...{ account, view, query, navigate }} dimension="workspace" disabledReason={workspaceReason} />
      <TypeFilter {...{ account, view, query, navigate }} />
      <NameFilter {...{ account, view, query, navigate }} dimension="resource_name" />
      <NameFilter {...{ account, view, query, navigate }} dimension="resource_uuid" />
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

function TypeFilter({ account, view, query, navigate }: FilterProps) {
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

const NAME_FIELD = {
  workspace: 'workspace',
  resource_name: 'resourceName',
  resource_uuid: 'resourceUuid',
} as const;

interface NameFilterProps extends FilterProps {
  readonly dimension: keyof typeof NAME_FIELD;
  readonly disabledReason?: string | undefined;
}

function NameFilter({ account, view, query, navigate, dimension, disabledReason }: NameFilterProps) {
  const [opened, setOpened] = useState(false);
  const onOpen = useCallback(() => setOpened(true), []);
  const { choices, loading } = useNameChoices(account, query, dimension, opened);
  const field = NAME_FIELD[dimension];
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

function shownValue(filters: Filters, field: keyof Filters): string {
  const value = filters[field];
  return value === undefined ? 'All' : valueLabel(field, value);
}
