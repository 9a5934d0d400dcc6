/** A choice of several values from a list, which may be long: only those, or all but those. Applied together. */
import { useEffect, useMemo, useState } from 'react';
import type { Filter } from '../view/filters.js';
import { type Choice, ChoiceList, matching } from './choice-list.js';
import { Popover } from './popover.js';

/** More would make the list slow, and nobody reads so far: they search. */
const MOST_SHOWN = 200;

interface ValueChoice extends Choice<string> {
  /** It is not in the list: the person typed it. */
  readonly isTyped?: boolean;
}

interface MultiPickerProps {
  readonly label: string;
  readonly shown: string;
  readonly filter: Filter | undefined;
  readonly choices: readonly Choice<string>[];
  readonly onApply: (filter: Filter | undefined) => void;
  /** Any text may be a value, not only those in the list. */
  readonly takesText?: boolean;
  readonly isLoading?: boolean;
  /** Said under the list. */
  readonly note?: string | undefined;
  readonly disabledReason?: string | undefined;
  readonly onOpen?: (() => void) | undefined;
}

export function MultiPicker(props: MultiPickerProps) {
  const { label, shown, filter, disabledReason } = props;
  return (
    <Popover label={label} shown={shown} active={filter !== undefined} disabledReason={disabledReason}>
      {(close) => <ValueList {...props} close={close} />}
    </Popover>
  );
}

function ValueList(props: MultiPickerProps & { readonly close: () => void }) {
  const { label, filter, choices, onApply, takesText = false, isLoading = false, note, onOpen, close } = props;
  const [text, setText] = useState('');
  const [values, setValues] = useState<ReadonlySet<string>>(() => new Set(filter?.values));
  const [isExcluded, setExcluded] = useState(filter?.isExcluded ?? false);
  useEffect(() => onOpen?.(), [onOpen]);

  const found = useMemo(
    () => offeredValues(choices, filter?.values ?? [], text, takesText),
    [choices, filter, text, takesText],
  );
  const offered = found.slice(0, MOST_SHOWN);
  const listed = found.filter(({ isTyped }) => !isTyped);

  const toggle = ({ value }: ValueChoice) => {
    const next = new Set(values);
    if (!next.delete(value)) next.add(value);
    setValues(next);
  };
  const apply = () => {
    onApply(values.size === 0 ? undefined : { values: [...values], isExcluded });
    close();
  };
  return (
    <>
      <ChoiceList
        label={label}
        choices={offered}
        isChosen={({ value }) => values.has(value)}
        onPick={toggle}
        onApply={apply}
        search={{ placeholder: `Find: ${label.toLowerCase()}`, text, onChange: setText }}
        isLoading={isLoading}
      />
      <p className="choices-note" role="status">
        {isLoading && offered.length > 0 ? `${choices.length} so far…` : countText(found.length, offered.length)} {note}
      </p>
      <div className="choices-end">
        <fieldset className="segments">
          <legend className="sr-only">What the chosen values mean</legend>
          <button type="button" aria-pressed={!isExcluded} onClick={() => setExcluded(false)}>
            Only
          </button>
          <button type="button" aria-pressed={isExcluded} onClick={() => setExcluded(true)}>
            All but
          </button>
        </fieldset>
        {text.trim() !== '' && listed.length > 1 && (
          <button
            type="button"
            className="quiet"
            onClick={() => setValues(new Set([...values, ...listed.map(({ value }) => value)]))}
          >
            Choose these {listed.length}
          </button>
        )}
        <button type="button" className="quiet" disabled={values.size === 0} onClick={() => setValues(new Set())}>
          None
        </button>
        <button type="button" className="primary" onClick={apply}>
          Apply{values.size > 0 && ` (${values.size})`}
        </button>
      </div>
    </>
  );
}

function countText(found: number, offered: number): string {
  return found > offered ? `The first ${offered} of ${found}; search for the others.` : '';
}

/** Values that are chosen are there even if the list does not have them, and a text that is typed as a value of its own. */
function offeredValues(
  choices: readonly Choice<string>[],
  chosen: readonly string[],
  text: string,
  takesText: boolean,
): readonly ValueChoice[] {
  const known = new Set(choices.map(({ value }) => value));
  const missing = chosen.filter((value) => !known.has(value)).map((value) => ({ value, label: value }));
  const found = matching([...missing, ...choices], text);
  const typed = text.trim();
  if (!takesText || typed === '' || found.some(({ value }) => value === typed)) return found;
  return [...found, { value: typed, label: typed, hint: 'exactly this', isTyped: true }];
}
