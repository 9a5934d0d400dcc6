/** Wraps the lists of Base UI in the page's style: menus, selects and searchable selects. */
import { Combobox } from '@base-ui/react/combobox';
import { Select as BaseSelect } from '@base-ui/react/select';
import { grouped } from '@meterline/catalog/plain';
import { type ReactNode, useId, useState } from 'react';
import { localized } from '../format/locale.js';

/** Opens a panel below its button and keeps the panel inside the window. */
export const POSITION = { align: 'start', sideOffset: 4, collisionPadding: 8 } as const;

export interface Choice<Value extends string = string> {
  readonly value: Value;
  readonly label: string;
  readonly hint?: string | undefined;
  /** Why the choice is unavailable. Shown below the label. */
  readonly disabledReason?: string | undefined;
}

export function ControlText({ label, shown }: { readonly label: string; readonly shown: string | undefined }) {
  return (
    <>
      <span className={shown === undefined ? undefined : 'control-label'}>{label}</span>
      {shown !== undefined && <span className="control-value">{shown}</span>}
      <svg viewBox="0 0 12 12" aria-hidden="true">
        <path d="m3 4.500 3 3 3-3" />
      </svg>
    </>
  );
}

function ChoiceText({ label, hint, disabledReason }: Omit<Choice, 'value'>) {
  return (
    <>
      <span className="choice-label">{label}</span>
      {hint && <span className="choice-hint">{hint}</span>}
      {disabledReason && <span className="choice-reason">{disabledReason}</span>}
    </>
  );
}

interface MenuProps<Value extends string> {
  readonly choices: readonly Choice<Value>[];
  readonly chosen?: Value | undefined;
  readonly onChoose: (value: Value) => void;
}

export function Menu<Value extends string>({ choices, chosen, onChoose }: MenuProps<Value>) {
  return (
    <ul className="menu">
      {choices.map(({ value, ...choice }) => (
        <li key={value}>
          <button
            type="button"
            aria-pressed={chosen === undefined ? undefined : value === chosen}
            onClick={() => onChoose(value)}
          >
            <ChoiceText {...choice} />
          </button>
        </li>
      ))}
    </ul>
  );
}

interface SelectProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly choices: readonly Choice<Value>[];
  readonly onChange: (value: Value) => void;
  readonly hint?: string;
  /** Position of the label. A `hidden` label is only for screen readers. */
  readonly labelPosition?: 'above' | 'inside' | 'hidden';
  /** Whether to highlight the control, because its value is not the default. */
  readonly active?: boolean;
}

export function Select<Value extends string>(props: SelectProps<Value>) {
  const { label, value, choices, onChange, hint = '', labelPosition = 'above', active = false } = props;
  const hintId = useId();
  const shown = choices.find((choice) => choice.value === value)?.label ?? (value || 'Select…');
  const select = (
    <BaseSelect.Root value={value} onValueChange={(next) => next !== null && onChange(next)} modal={false}>
      {labelPosition === 'above' && <BaseSelect.Label className="option-label">{label}</BaseSelect.Label>}
      <BaseSelect.Trigger
        className={active ? 'control active' : 'control'}
        aria-label={labelPosition === 'above' ? undefined : label}
        aria-describedby={hint === '' ? undefined : hintId}
      >
        <ControlText {...(labelPosition === 'inside' ? { label, shown } : { label: shown, shown: undefined })} />
      </BaseSelect.Trigger>
      <BaseSelect.Portal>
        <BaseSelect.Positioner className="positioner" alignItemWithTrigger={false} {...POSITION}>
          <BaseSelect.Popup className="panel">
            <BaseSelect.List className="choices">
              {choices.map((choice) => (
                <BaseSelect.Item
                  key={choice.value}
                  className="choice"
                  value={choice.value}
                  label={choice.label}
                  disabled={choice.disabledReason !== undefined}
                >
                  <ChoiceText {...choice} />
                </BaseSelect.Item>
              ))}
            </BaseSelect.List>
          </BaseSelect.Popup>
        </BaseSelect.Positioner>
      </BaseSelect.Portal>
    </BaseSelect.Root>
  );
  if (labelPosition !== 'above') return select;
  return (
    <div className="option">
      {select}
      {hint !== '' && (
        <span className="hint" id={hintId}>
          {hint}
        </span>
      )}
    </div>
  );
}

/** Maximum number of listed choices. Longer lists would be slow, and users search them anyway. */
export const MAX_LISTED = 200;

/** Explains how many of the choices are not listed. Returns undefined if all are listed. */
export function cutText(choices: number): string | undefined {
  const others = choices - MAX_LISTED;
  if (others <= 0) return undefined;
  return `The list shows the first ${MAX_LISTED}. Search for the other ${localized(grouped(String(others)))}.`;
}

/** Returns the choices whose label contains the text, ignoring case. Exact matches come first, so that Enter selects them. */
export function matching(choices: readonly Choice[], text: string): readonly Choice[] {
  const search = text.trim().toLowerCase();
  if (search === '') return choices;
  const found = choices.filter(({ label }) => label.toLowerCase().includes(search));
  const isExact = ({ value, label }: Choice) => [value, label].some((each) => each.toLowerCase() === search);
  return [...found.filter(isExact), ...found.filter((choice) => !isExact(choice))];
}

type SearchSelectProps = Pick<SelectProps<string>, 'label' | 'value' | 'choices' | 'onChange'>;

export function SearchSelect({ label, value, choices, onChange }: SearchSelectProps) {
  const [text, setText] = useState('');
  const chosen = choices.find((choice) => choice.value === value) ?? null;
  const found = matching(choices, text);
  return (
    <Combobox.Root
      items={found}
      filter={null}
      limit={MAX_LISTED}
      autoHighlight
      value={chosen}
      onValueChange={(next) => next && onChange(next.value)}
      isItemEqualToValue={(a, b) => a.value === b.value}
      inputValue={text}
      onInputValueChange={setText}
    >
      <Combobox.Trigger className="control" aria-label={label}>
        <ControlText label={label} shown={chosen?.label ?? value} />
      </Combobox.Trigger>
      <SearchPopup label={label} note={cutText(found.length)} />
    </Combobox.Root>
  );
}

function choiceItem(choice: Choice) {
  return (
    <Combobox.Item key={choice.value} className="choice" value={choice}>
      <ChoiceText {...choice} />
    </Combobox.Item>
  );
}

interface SearchPopupProps {
  readonly label: string;
  readonly note: ReactNode;
  readonly isLoading?: boolean;
  readonly onEnter?: () => void;
  readonly children?: ReactNode;
}

export function SearchPopup({ label, note, isLoading = false, onEnter, children }: SearchPopupProps) {
  const prompt = `Search ${label.toLowerCase()}s`;
  return (
    <Combobox.Portal>
      <Combobox.Positioner className="positioner" {...POSITION}>
        <Combobox.Popup className="panel" aria-label={label}>
          <Combobox.Input
            className="field"
            aria-label={prompt}
            placeholder={prompt}
            onKeyDown={({ key, currentTarget }) => {
              if (key === 'Enter' && !currentTarget.hasAttribute('aria-activedescendant')) onEnter?.();
            }}
          />
          <Combobox.Empty className="choices-empty">{isLoading ? 'Loading…' : 'No matches.'}</Combobox.Empty>
          <Combobox.List className="choices">{choiceItem}</Combobox.List>
          <p className="choices-note" role="status">
            {note}
          </p>
          {children}
        </Combobox.Popup>
      </Combobox.Positioner>
    </Combobox.Portal>
  );
}
