/** Renders the filters. Each filter takes several values: codes of the catalog, or names that were used in the period. */
import { Combobox } from '@base-ui/react/combobox';
import {
  billingDimensions,
  type EntryField,
  filterQuery,
  grouped,
  MAX_FILTER_VALUES,
  resourceTypes,
  type Window,
} from '@meterline/catalog/plain';
import type { FilterQuery } from '@meterline/client';
import { useState } from 'react';
import { localized } from '../format/locale.js';
import { amountText, FIELD_LABEL, filterText, quantityOf, valueLabel } from '../format/texts.js';
import { useUsedValues } from '../metrics/queries.js';
import { navigate } from '../view/address.js';
import { type NameField, type View, withFilter } from '../view/view.js';
import { Popover, PrimaryButton, Segments, TextButton } from './controls.js';
import { type Choice, ControlText, cutText, MAX_LISTED, matching, SearchPopup } from './lists.js';

interface FilterBarProps {
  readonly account: string;
  readonly view: View;
  readonly window: Window;
  /** The reason why the user cannot filter by workspace, or undefined if the user can. */
  readonly workspaceReason: string | undefined;
}

export function FilterBar({ account, view, window, workspaceReason }: FilterBarProps) {
  return (
    <fieldset className="filters">
      <legend className="sr-only">Filters</legend>
      <NameFilter {...{ account, view, window }} field="workspace" disabledReason={workspaceReason} />
      <ValuePicker
        view={view}
        field="resourceType"
        choices={resourceTypes().map((value) => ({ value, label: valueLabel('resourceType', value) }))}
      />
      <NameFilter {...{ account, view, window }} field="resourceName" />
      <NameFilter {...{ account, view, window }} field="resourceUuid" />
      <ValuePicker
        view={view}
        field="billingDimension"
        choices={billingDimensions().map((value) => {
          return { value, label: valueLabel('billingDimension', value), hint: quantityOf(value).name };
        })}
      />
    </fieldset>
  );
}

interface NameFilterProps extends Omit<FilterBarProps, 'workspaceReason'> {
  readonly field: NameField;
  readonly disabledReason?: string | undefined;
}

function NameFilter({ account, view, window, field, disabledReason }: NameFilterProps) {
  // Keep the window from the moment when the list was opened. Otherwise each automatic refresh would read all pages of values again.
  const [openWindow, setOpenWindow] = useState<Window>();
  const used = useUsedValues(account, field, openWindow ?? window, otherFilters(view, field), openWindow !== undefined);
  const choices = used.entries.map(({ [field]: value = '', summary }) => {
    return { value, label: valueLabel(field, value), hint: amountText(summary.cost, undefined) };
  });
  const note = used.isError
    ? 'The list could not be loaded.'
    : used.isCut
      ? 'This list is incomplete. If a name is not shown, type it exactly.'
      : undefined;
  return (
    <ValuePicker
      {...{ view, field, choices, note, disabledReason }}
      acceptsText
      isLoading={used.isLoading && openWindow !== undefined}
      onOpenChange={(isOpen) => setOpenWindow(isOpen ? window : undefined)}
    />
  );
}

function otherFilters({ filters }: View, field: NameField): FilterQuery {
  const { [field]: _removed, ...others } = filters;
  return filterQuery(others);
}

const INCLUDE = 'Include';
const EXCLUDE = 'Exclude';

interface ValuePickerProps {
  readonly view: View;
  readonly field: EntryField;
  readonly choices: readonly Choice[];
  /** Whether the user can enter any text as a value, in addition to the listed values. */
  readonly acceptsText?: boolean;
  readonly isLoading?: boolean;
  readonly note?: string | undefined;
  readonly disabledReason?: string | undefined;
  readonly onOpenChange?: (isOpen: boolean) => void;
}

/** Lets the user pick values from a list. The selected values apply when the list closes, unless the user closes it with Escape. */
function ValuePicker(props: ValuePickerProps) {
  const { view, field, choices, acceptsText = false, isLoading = false, note, disabledReason } = props;
  const filter = view.filters[field];
  const label = FIELD_LABEL[field];
  const shown = filter === undefined ? 'All' : filterText(field, filter);
  const [open, setOpen] = useState(false);
  const [text, setText] = useState('');
  const [values, setValues] = useState<readonly string[]>([]);
  const [isExcluded, setExcluded] = useState(false);

  const others = Object.entries(view.filters).flatMap(([of, each]) => (of === field ? [] : (each?.values ?? [])));
  const tooMany = (next: readonly string[]) =>
    next.length > 0 &&
    next.length + others.length > MAX_FILTER_VALUES &&
    `All filters together can have at most ${MAX_FILTER_VALUES} values. This selection would make it ${next.length + others.length}.`;
  const filterOf = (next: readonly string[]) => (next.length === 0 ? undefined : { values: next, isExcluded });
  const isChanged = (next: readonly string[]) => JSON.stringify(filterOf(next)) !== JSON.stringify(filter);
  const toggle = (isOpen: boolean, isApplied: boolean, next = values) => {
    setValues(isOpen ? (filter?.values ?? []) : next);
    // With too many values, the list stays open and shows the reason, until the user removes some values or presses Escape.
    if (!isOpen && isApplied && isChanged(next) && tooMany(next)) return;
    if (isOpen) setExcluded(filter?.isExcluded ?? false);
    else if (isApplied && isChanged(next)) navigate(withFilter(view, field, filterOf(next)));
    setOpen(isOpen);
    setText('');
    props.onOpenChange?.(isOpen);
  };
  if (disabledReason !== undefined) return <Popover {...{ label, shown, disabledReason }}>{() => null}</Popover>;

  const known = new Map(choices.map((choice) => [choice.value, choice]));
  const choiceOf = (value: string) => known.get(value) ?? { value, label: value };
  const missing = (filter?.values ?? []).filter((value) => !known.has(value)).map(choiceOf);
  const search = text.trim();
  const listed = matching([...missing, ...choices], search);
  const isNew = acceptsText && search !== '' && listed.every(({ value }) => value !== search);
  const found = isNew ? [...listed, { value: search, label: search, hint: 'exact match' }] : listed;
  const loaded = isLoading && listed.length > 0 && `${localized(grouped(String(choices.length)))} loaded so far…`;
  const notes = [loaded || cutText(found.length), note, tooMany(values)];
  // Enter after a search applies the selection, and Enter without a search only changes it.
  const select = (next: readonly Choice[], isByKeyboard: boolean) => {
    const selected = next.map(({ value }) => value);
    if (isByKeyboard && search !== '') toggle(false, true, selected);
    else setValues(selected);
  };
  return (
    <Combobox.Root
      multiple
      items={found}
      filter={null}
      limit={MAX_LISTED}
      autoHighlight
      value={values.map(choiceOf)}
      isItemEqualToValue={(a, b) => a.value === b.value}
      onValueChange={(next, { event }) => select(next, event instanceof KeyboardEvent)}
      inputValue={text}
      onInputValueChange={(next, { isItemPress }) => !isItemPress && setText(next)}
      open={open}
      onOpenChange={(isOpen, { reason }) => toggle(isOpen, reason !== 'escape-key')}
    >
      <Combobox.Trigger className={filter ? 'control active' : 'control'} aria-label={label}>
        <ControlText {...{ label, shown }} />
      </Combobox.Trigger>
      <SearchPopup {...{ label, isLoading }} note={notes.filter(Boolean).join(' ')} onEnter={() => toggle(false, true)}>
        <div className="choices-end">
          <Segments
            legend="Include or exclude the selected values"
            choices={[INCLUDE, EXCLUDE]}
            chosen={isExcluded ? EXCLUDE : INCLUDE}
            onChoose={(chosen) => setExcluded(chosen === EXCLUDE)}
          />
          {search !== '' && listed.length > 1 && (
            <TextButton onClick={() => setValues([...new Set([...values, ...listed.map(({ value }) => value)])])}>
              Select all {localized(grouped(String(listed.length)))}
            </TextButton>
          )}
          <TextButton disabled={values.length === 0} onClick={() => setValues([])}>
            Clear
          </TextButton>
          <PrimaryButton disabled={isChanged(values) && tooMany(values) !== false} onClick={() => toggle(false, true)}>
            Apply{values.length > 0 && ` (${values.length})`}
          </PrimaryButton>
        </div>
      </SearchPopup>
    </Combobox.Root>
  );
}
