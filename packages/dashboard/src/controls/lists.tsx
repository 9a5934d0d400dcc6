/** What is chosen from a list: those of Base UI, with the page's look. */
import { Combobox } from '@base-ui/react/combobox';
import { Select as BaseSelect } from '@base-ui/react/select';
import { type ReactNode, useId } from 'react';

/** Where something opens: below its button, inside the window. */
export const PLACE = { align: 'start', sideOffset: 4, collisionPadding: 8 } as const;

export interface Choice<Value extends string = string> {
  readonly value: Value;
  readonly label: string;
  /** Next to the label, in grey. */
  readonly hint?: string | undefined;
  /** Why it cannot be chosen; shown under its label. */
  readonly disabledReason?: string | undefined;
}

/** What a button that opens something says: what it is for, and its present choice. */
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

/** What a click does at once, one below the other. */
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
  /** Where the label is: above, in the button, or for screen readers alone. */
  readonly labelled?: 'above' | 'inside' | 'hidden';
  /** Marks a choice that differs from the default. */
  readonly active?: boolean;
}

/** A choice of one of a few. */
export function Select<Value extends string>(props: SelectProps<Value>) {
  const { label, value, choices, onChange, hint = '', labelled = 'above', active = false } = props;
  const hintId = useId();
  const shown = choices.find((choice) => choice.value === value)?.label ?? (value || 'Choose…');
  const select = (
    <BaseSelect.Root value={value} onValueChange={(next) => next !== null && onChange(next)} modal={false}>
      {labelled === 'above' && <BaseSelect.Label className="option-label">{label}</BaseSelect.Label>}
      <BaseSelect.Trigger
        className={active ? 'control active' : 'control'}
        aria-label={labelled === 'above' ? undefined : label}
        aria-describedby={hint === '' ? undefined : hintId}
      >
        <ControlText {...(labelled === 'inside' ? { label, shown } : { label: shown, shown: undefined })} />
      </BaseSelect.Trigger>
      <BaseSelect.Portal>
        <BaseSelect.Positioner className="positioner" alignItemWithTrigger={false} {...PLACE}>
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
  if (labelled !== 'above') return select;
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

/** More would make the list slow, and nobody reads so far: they search. */
export const MOST_SHOWN = 200;

type SearchSelectProps = Pick<SelectProps<string>, 'label' | 'value' | 'choices' | 'onChange'>;

/** A choice of one of many, which are searched. */
export function SearchSelect({ label, value, choices, onChange }: SearchSelectProps) {
  const chosen = choices.find((choice) => choice.value === value) ?? null;
  return (
    <Combobox.Root
      items={choices}
      limit={MOST_SHOWN}
      autoHighlight
      value={chosen}
      onValueChange={(next) => next && onChange(next.value)}
      isItemEqualToValue={(a, b) => a.value === b.value}
    >
      <Combobox.Trigger className="control" aria-label={label}>
        <ControlText label={label} shown={chosen?.label ?? value} />
      </Combobox.Trigger>
      <SearchPopup label={label}>
        <Combobox.List className="choices">{choiceItem}</Combobox.List>
      </SearchPopup>
    </Combobox.Root>
  );
}

export function choiceItem(choice: Choice) {
  return (
    <Combobox.Item key={choice.value} className="choice" value={choice}>
      <ChoiceText {...choice} />
    </Combobox.Item>
  );
}

interface SearchPopupProps {
  readonly label: string;
  readonly isLoading?: boolean;
  /** Enter was pressed, and no choice is highlighted. */
  readonly onEnter?: () => void;
  readonly children: ReactNode;
}

/** What a list that can be searched opens in. */
export function SearchPopup({ label, isLoading = false, onEnter, children }: SearchPopupProps) {
  return (
    <Combobox.Portal>
      <Combobox.Positioner className="positioner" {...PLACE}>
        <Combobox.Popup className="panel" aria-label={label}>
          <Combobox.Input
            className="field"
            aria-label={`Find: ${label.toLowerCase()}`}
            placeholder={`Find: ${label.toLowerCase()}`}
            onKeyDown={({ key, currentTarget }) => {
              if (key === 'Enter' && !currentTarget.hasAttribute('aria-activedescendant')) onEnter?.();
            }}
          />
          <Combobox.Empty className="choices-empty">{isLoading ? 'Loading…' : 'Nothing matches.'}</Combobox.Empty>
          {children}
        </Combobox.Popup>
      </Combobox.Positioner>
    </Combobox.Portal>
  );
}
