/** The filters, each of which takes several values: the catalog's words, or every name that was used in the period. */
import {
  BILLING_DIMENSIONS,
  ENTRY_FIELD,
  type EntryField,
  formatUsd,
  RESOURCE_TYPES,
  type Window,
} from '@meterline/catalog';
import type { FilterQuery } from '@meterline/client';
import { useCallback, useState } from 'react';
import { quantityOf } from '../breakdown/quantities.js';
import {
  BILLING_DIMENSION_LABEL,
  DIMENSION_LABEL,
  filterText,
  RESOURCE_TYPE_LABEL,
  valueLabel,
} from '../breakdown/texts.js';
import { filterQuery } from '../metrics/filter-query.js';
import { NAME_DIMENSION, useUsedValues } from '../metrics/values.js';
import { navigate } from '../view/address.js';
import { type Filter, hasFilters, type NameField } from '../view/filters.js';
import { type View, withFilter, withGroups } from '../view/view.js';
import { MultiPicker } from './multi-picker.js';

const FIELD_LABEL = {
  workspace: DIMENSION_LABEL.workspace,
  resourceType: 'Type',
  resourceName: DIMENSION_LABEL.resource_name,
  resourceUuid: DIMENSION_LABEL.resource_uuid,
  billingDimension: DIMENSION_LABEL.billing_dimension,
} as const satisfies Record<EntryField, string>;
const FIELDS = Object.values(ENTRY_FIELD);

interface FilterBarProps {
  readonly account: string;
  readonly view: View;
  /** Up to now. */
  readonly window: Window;
  /** Why this caller may not choose workspaces; undefined if they may. */
  readonly workspaceReason: string | undefined;
}

export function FilterBar({ account, view, window, workspaceReason }: FilterBarProps) {
  const { filters } = view;
  const apply = (field: EntryField) => (filter: Filter | undefined) => navigate(withFilter(view, field, filter));
  return (
    <fieldset className="filters">
      <legend className="sr-only">Filters</legend>
      <NameFilter {...{ account, view, window }} field="workspace" disabledReason={workspaceReason} />
      <MultiPicker
        label={FIELD_LABEL.resourceType}
        shown={shownFilter(view, 'resourceType')}
        filter={filters.resourceType}
        choices={RESOURCE_TYPES.map((value) => ({ value, label: RESOURCE_TYPE_LABEL[value] }))}
        onApply={apply('resourceType')}
      />
      <NameFilter {...{ account, view, window }} field="resourceName" />
      <NameFilter {...{ account, view, window }} field="resourceUuid" />
      <MultiPicker
        label={FIELD_LABEL.billingDimension}
        shown={shownFilter(view, 'billingDimension')}
        filter={filters.billingDimension}
        choices={BILLING_DIMENSIONS.map((value) => ({
          value,
          label: BILLING_DIMENSION_LABEL[value],
          hint: quantityOf(value).name,
        }))}
        onApply={apply('billingDimension')}
      />
    </fieldset>
  );
}

interface NameFilterProps extends Omit<FilterBarProps, 'workspaceReason'> {
  readonly field: NameField;
  readonly disabledReason?: string | undefined;
}

function NameFilter({ account, view, window, field, disabledReason }: NameFilterProps) {
  const [opened, setOpened] = useState(false);
  const onOpen = useCallback(() => setOpened(true), []);
  const used = useUsedValues(account, field, window, otherFilters(view, field), opened);
  const choices = used.values.map(({ value, cost }) => ({
    value,
    label: valueLabel(field, value),
    hint: formatUsd(cost),
  }));
  return (
    <MultiPicker
      label={DIMENSION_LABEL[NAME_DIMENSION[field]]}
      shown={shownFilter(view, field)}
      filter={view.filters[field]}
      choices={choices}
      onApply={(filter) => navigate(withFilter(view, field, filter))}
      takesText
      isLoading={used.isLoading && opened}
      note={used.isError ? 'The list cannot be read.' : used.isCut ? 'There are more; type the exact name.' : undefined}
      disabledReason={disabledReason}
      onOpen={onOpen}
    />
  );
}

/** What the other filters leave. */
function otherFilters({ filters }: View, field: NameField): FilterQuery {
  const { [field]: _own, ...others } = filters;
  return filterQuery(others);
}

function shownFilter({ filters }: View, field: EntryField): string {
  const filter = filters[field];
  return filter === undefined ? 'All' : filterText(field, filter);
}

/** Each filter that is set, with a way to take it away. */
export function FilterChips({ view }: { readonly view: View }) {
  if (!hasFilters(view.filters)) return null;
  return (
    <ul className="chips" aria-label="Filters that are set">
      {FIELDS.map((field) => {
        const filter = view.filters[field];
        if (!filter) return null;
        const text = `${FIELD_LABEL[field]}: ${filterText(field, filter)}`;
        return (
          <li key={field} className="chip">
            <span title={text}>{text}</span>
            <button
              type="button"
              aria-label={`Remove ${text}`}
              onClick={() => navigate(withFilter(view, field, undefined))}
            >
              ×
            </button>
          </li>
        );
      })}
      <li>
        <button type="button" className="quiet" onClick={() => navigate(withGroups(view, { filters: {}, trail: [] }))}>
          Clear filters
        </button>
      </li>
    </ul>
  );
}
