/** The filters, each of which takes several values: the catalog's words, or every name that was used in the period. */

import { Combobox } from '@base-ui/react/combobox';
import { BILLING_DIMENSIONS, type EntryField, grouped, RESOURCE_TYPES, type Window } from '@meterline/catalog';
import type { FilterQuery } from '@meterline/client';
import { useState } from 'react';
import {
  amountText,
  BILLING_DIMENSION_LABEL,
  FIELD_LABEL,
  filterText,
  localized,
  quantityOf,
  RESOURCE_TYPE_LABEL,
  valueLabel,
} from '../breakdown/texts.js';
import { useUsedValues } from '../metrics/queries.js';
import { filterQuery } from '../metrics/query.js';
import { navigate } from '../view/address.js';
import { type Filter, type NameField, type View, withFilter } from '../view/view.js';
import { type Choice, ControlText, Popover, Segments } from './controls.js';
import { choiceItem, MOST_SHOWN, SearchPopup } from './search-list.js';

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
      <ValuePicker
        label={FIELD_LABEL.resourceType}
        shown={shownFilter(view, 'resourceType')}
        filter={filters.resourceType}
        choices={RESOURCE_TYPES.map((value) => ({ value, label: RESOURCE_TYPE_LABEL[value] }))}
        onApply={apply('resourceType')}
      />
      <NameFilter {...{ account, view, window }} field="resourceName" />
      <NameFilter {...{ account, view, window }} field="resourceUuid" />
      <ValuePicker
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
  const used = useUsedValues(account, field, window, otherFilters(view, field), opened);
  const choices = used.entries.map(({ [field]: value = '', summary }) => {
    return { value, label: valueLabel(field, value), hint: amountText(summary.cost, undefined) };
  });
  return (
    <ValuePicker
      label={FIELD_LABEL[field]}
      shown={shownFilter(view, field)}
      filter={view.filters[field]}
      choices={choices}
      onApply={(filter) => navigate(withFilter(view, field, filter))}
      takesText
      isLoading={used.isLoading && opened}
      note={used.isError ? 'The list cannot be read.' : used.isCut ? 'There are more; type the exact name.' : undefined}
      disabledReason={disabledReason}
      onOpenChange={setOpened}
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

const ONLY = 'Only';
const ALL_BUT = 'All but';

interface ValuePickerProps {
  readonly label: string;
  readonly shown: string;
  readonly filter: Filter | undefined;
  readonly choices: readonly Choice[];
  readonly onApply: (filter: Filter | undefined) => void;
  /** Any text may be a value, not only those in the list. */
  readonly takesText?: boolean;
  readonly isLoading?: boolean;
  /** Said under the list. */
  readonly note?: string | undefined;
  readonly disabledReason?: string | undefined;
  readonly onOpenChange?: (isOpen: boolean) => void;
}

/** What is ticked is applied when the list closes, unless Escape closes it. */
function ValuePicker(props: ValuePickerProps) {
  const { label, shown, filter, choices, onApply, takesText = false, isLoading = false, note, disabledReason } = props;
  const [open, setOpen] = useState(false);
  const [text, setText] = useState('');
  const [values, setValues] = useState<readonly string[]>([]);
  const [isExcluded, setExcluded] = useState(false);

  const chosen = values.length === 0 ? undefined : { values, isExcluded };
  const isChanged = JSON.stringify(chosen) !== JSON.stringify(filter);
  const show = () => {
    setValues(filter?.values ?? []);
    setExcluded(filter?.isExcluded ?? false);
  };
  const turn = (isOpen: boolean, isApplied: boolean) => {
    if (isOpen) show();
    else if (isApplied && isChanged) onApply(chosen);
    setOpen(isOpen);
    setText('');
    props.onOpenChange?.(isOpen);
  };
  if (disabledReason !== undefined) return <Popover {...{ label, shown, disabledReason }}>{() => null}</Popover>;

  const known = new Map(choices.map((choice) => [choice.value, choice]));
  const choiceOf = (value: string) => known.get(value) ?? { value, label: value };
  const missing = (filter?.values ?? []).filter((value) => !known.has(value)).map(choiceOf);
  const wanted = text.trim();
  const listed = [...missing, ...choices].filter((choice) => choice.label.toLowerCase().includes(wanted.toLowerCase()));
  const isNew = takesText && wanted !== '' && listed.every(({ value }) => value !== wanted);
  const found = isNew ? [...listed, { value: wanted, label: wanted, hint: 'exactly this' }] : listed;
  const cut =
    found.length > MOST_SHOWN &&
    `The first ${MOST_SHOWN} of ${localized(grouped(String(found.length)))}; search for the others.`;
  return (
    <Combobox.Root
      multiple
      items={found}
      filter={null}
      limit={MOST_SHOWN}
      value={values.map(choiceOf)}
      isItemEqualToValue={(a, b) => a.value === b.value}
      onValueChange={(next) => setValues(next.map(({ value }) => value))}
      inputValue={text}
      onInputValueChange={(next, { isItemPress }) => !isItemPress && setText(next)}
      open={open}
      onOpenChange={(isOpen, { reason }) => turn(isOpen, reason !== 'escape-key')}
    >
      <Combobox.Trigger className={filter ? 'control active' : 'control'} aria-label={label}>
        <ControlText {...{ label, shown }} />
      </Combobox.Trigger>
      <SearchPopup {...{ label, isLoading }} onEnter={() => turn(false, true)}>
        <Combobox.List className="choices">{choiceItem}</Combobox.List>
        <p className="choices-note" role="status">
          {isLoading && listed.length > 0 ? `${localized(grouped(String(choices.length)))} so far…` : cut} {note}
        </p>
        <div className="choices-end">
          <Segments
            legend="What the chosen values mean"
            choices={[ONLY, ALL_BUT]}
            chosen={isExcluded ? ALL_BUT : ONLY}
            onChoose={(chosen) => setExcluded(chosen === ALL_BUT)}
          />
          {wanted !== '' && listed.length > 1 && (
            <button
              type="button"
              className="quiet"
              onClick={() => setValues([...new Set([...values, ...listed.map(({ value }) => value)])])}
            >
              Choose these {localized(grouped(String(listed.length)))}
            </button>
          )}
          <button type="button" className="quiet" disabled={values.length === 0} onClick={() => setValues([])}>
            None
          </button>
          <button type="button" className="primary" onClick={() => turn(false, true)}>
            Apply{values.length > 0 && ` (${values.length})`}
          </button>
        </div>
      </SearchPopup>
    </Combobox.Root>
  );
}
