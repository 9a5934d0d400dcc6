/** Lists that are searched: of many accounts, and of the values of a filter. */
import { Combobox } from '@base-ui/react/combobox';
import type { ReactNode } from 'react';
import { type Choice, ChoiceText, ControlText, PLACE } from './controls.js';

/** More would make the list slow, and nobody reads so far: they search. */
export const MOST_SHOWN = 200;

interface SearchSelectProps {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly onChange: (value: string) => void;
}

/** A choice of one of many, which are searched. */
export function SearchSelect({ label, value, choices, onChange }: SearchSelectProps) {
  const chosen = choices.find((choice) => choice.value === value) ?? null;
  return (
    <Combobox.Root
      items={choices}
      limit={MOST_SHOWN}
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
