/** A choice of one value from a list, behind a button that shows the present one. */
import { useState } from 'react';
import { type Choice, ChoiceList, matching } from './choice-list.js';
import { Popover } from './popover.js';

interface PickerProps<Value> {
  readonly label: string;
  readonly shown: string;
  readonly choices: readonly Choice<Value>[];
  readonly chosen: Value;
  readonly onChoose: (value: Value) => void;
  /** In the field to search in; undefined: there is none. */
  readonly placeholder?: string | undefined;
  readonly isLoading?: boolean;
}

export function Picker<Value>(props: PickerProps<Value>) {
  const { label, shown } = props;
  return (
    <Popover label={label} shown={shown}>
      {(close) => <PickerList {...props} close={close} />}
    </Popover>
  );
}

function PickerList<Value>({
  label,
  choices,
  chosen,
  onChoose,
  placeholder,
  isLoading,
  close,
}: PickerProps<Value> & { readonly close: () => void }) {
  const [text, setText] = useState('');
  return (
    <ChoiceList
      label={label}
      choices={matching(choices, text)}
      isChosen={({ value }) => value === chosen}
      onPick={({ value }) => {
        onChoose(value);
        close();
      }}
      search={placeholder === undefined ? undefined : { placeholder, text, onChange: setText }}
      isLoading={isLoading}
    />
  );
}
