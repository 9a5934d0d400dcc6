/** The filters, each of which takes several values: the catalog's words, or every name that was used in the period. */

import { Combobox } from '@base-ui/react/combobox';
import {
  BILLING_DIMENSIONS,
  type EntryField,
  grouped,
  MAX_FILTER_VALUES,
  RESOURCE_TYPES,
  type Window,
} from '@meterline/catalog/plain';
import type { FilterQuery } from '@meterline/client';
import { useState } from 'react';
import { amountText, FIELD_LABEL, filterText, localized, quantityOf, valueLabel } from '../breakdown/texts.js';
import { useUsedValues } from '../metrics/queries.js';
import { filterQuery } from '../metrics/query.js';
import { navigate } from '../view/address.js';
import { type NameField, type View, withFilter } from '../view/view.js';
import { Popover, Primary, Quiet, Segments } from './controls.js';
import { type Choice, ControlText, choiceItem, MOST_SHOWN, SearchPopup } from './lists.js';

interface FilterBarProps {
  readonly account: string;
  readonly view: View;
  /** Up to now. */
  readonly window: Window;
  /** Why this caller may not choose workspaces; undefined if they may. */
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
        choices={RESOURCE_TYPES.map((value) => ({ value, label: valueLabel('resourceType', value) }))}
      />
      <NameFilter {...{ account, view, window }} field="resourceName" />
      <NameFilter {...{ account, view, window }} field="resourceUuid" />
      <ValuePicker
        view={view}
        field="billingDimension"
        choices={BILLING_DIMENSIONS.map((value) => {
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
  // The window at the moment when the list was opened: a view that refreshes by itself would read all pages of values each time.
  const [opened, setOpened] = useState<Window>();
  const used = useUsedValues(account, field, opened ?? window, otherFilters(view, field), opened !== undefined);
  const choices = used.entries.map(({ [field]: value = '', summary }) => {
    return { value, label: valueLabel(field, value), hint: amountText(summary.cost, undefined) };
  });
  const note = used.isError
    ? 'The list cannot be read.'
    : used.isCut
      ? 'There are more; type the exact name.'
      : undefined;
  return (
    <ValuePicker
      {...{ view, field, choices, note, disabledReason }}
      takesText
      isLoading={used.isLoading && opened !== undefined}
      onOpenChange={(isOpen) => setOpened(isOpen ? window : undefined)}
    />
  );
}

/** What the other filters leave. */
function otherFilters({ filters }: View, field: NameField): FilterQuery {
  const { [field]: _own, ...others } = filters;
  return filterQuery(others);
}

const ONLY = 'Only';
const ALL_BUT = 'All but';

interface ValuePickerProps {
  readonly view: View;
  readonly field: EntryField;
  readonly choices: readonly Choice[];
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
  const { view, field, choices, takesText = false, isLoading = false, note, disabledReason } = props;
  const filter = view.filters[field];
  const label = FIELD_LABEL[field];
  const shown = filter === undefined ? 'All' : filterText(field, filter);
  const [open, setOpen] = useState(false);
  const [text, setText] = useState('');
  const [values, setValues] = useState<readonly string[]>([]);
  const [isExcluded, setExcluded] = useState(false);

  const others = Object.entries(view.filters).flatMap(([of, each]) => (of === field ? [] : (each?.values ?? [])));
  const tooMany =
    values.length > 0 &&
    values.length + others.length > MAX_FILTER_VALUES &&
    `All filters together may have ${MAX_FILTER_VALUES} values; these would be ${values.length + others.length}.`;
  const chosen = values.length === 0 ? undefined : { values, isExcluded };
  const isChanged = JSON.stringify(chosen) !== JSON.stringify(filter);
  const turn = (isOpen: boolean, isApplied: boolean) => {
    // The list stays open and says why; Escape closes it.
    if (!isOpen && isApplied && isChanged && tooMany) return;
    if (isOpen) {
      setValues(filter?.values ?? []);
      setExcluded(filter?.isExcluded ?? false);
    } else if (isApplied && isChanged) navigate(withFilter(view, field, chosen));
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
          {isLoading && listed.length > 0 ? `${localized(grouped(String(choices.length)))} so far…` : cut} {note}{' '}
          {tooMany}
        </p>
        <div className="choices-end">
          <Segments
            legend="What the chosen values mean"
            choices={[ONLY, ALL_BUT]}
            chosen={isExcluded ? ALL_BUT : ONLY}
            onChoose={(chosen) => setExcluded(chosen === ALL_BUT)}
          />
          {wanted !== '' && listed.length > 1 && (
            <Quiet onClick={() => setValues([...new Set([...values, ...listed.map(({ value }) => value)])])}>
              Choose these {localized(grouped(String(listed.length)))}
            </Quiet>
          )}
          <Quiet disabled={values.length === 0} onClick={() => setValues([])}>
            None
          </Quiet>
          <Primary disabled={isChanged && tooMany !== false} onClick={() => turn(false, true)}>
            Apply{values.length > 0 && ` (${values.length})`}
          </Primary>
        </div>
      </SearchPopup>
    </Combobox.Root>
  );
}
