/**
 * A list to choose from, which may be long: the arrow keys and the pointer move through it, and it may have a field to search
 * in. The focus stays in that field, or in the list, and the options are named by `aria-activedescendant`.
 */
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';

export interface Choice<Value> {
  readonly value: Value;
  readonly label: string;
  /** Next to the label, in grey. */
  readonly hint?: string | undefined;
  /** Why it cannot be chosen; shown under its label. */
  readonly disabledReason?: string | undefined;
}

interface ChoiceListProps<Value, Offered extends Choice<Value>> {
  readonly label: string;
  /** Those that match what is searched for. */
  readonly choices: readonly Offered[];
  readonly isChosen: (choice: Offered) => boolean;
  readonly onPick: (choice: Offered) => void;
  /** Several may be chosen; called to end the choice from the keyboard. */
  readonly onApply?: () => void;
  readonly search?: ChoiceSearch | undefined;
  readonly isLoading?: boolean | undefined;
}

interface ChoiceSearch {
  readonly placeholder: string;
  readonly text: string;
  readonly onChange: (text: string) => void;
}

export function ChoiceList<Value, Offered extends Choice<Value>>({
  label,
  choices,
  isChosen,
  onPick,
  onApply,
  search,
  isLoading = false,
}: ChoiceListProps<Value, Offered>) {
  const listId = useId();
  const list = useRef<HTMLDivElement>(null);
  const [position, setPosition] = useState(() => (onApply ? 0 : Math.max(0, choices.findIndex(isChosen))));
  const current = Math.min(position, choices.length - 1);
  useEffect(() => {
    list.current?.children[current]?.scrollIntoView({ block: 'nearest' });
  }, [current]);

  const pick = (choice: Offered | undefined) => {
    if (choice && choice.disabledReason === undefined) onPick(choice);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setPosition((current + step + choices.length) % Math.max(1, choices.length));
    else if (event.key === 'Home' && !search) setPosition(0);
    else if (event.key === 'End' && !search) setPosition(choices.length - 1);
    else if (event.key === 'Enter' && onApply && (event.ctrlKey || event.metaKey)) onApply();
    else if (event.key === 'Enter' || (event.key === ' ' && !search)) pick(choices[current]);
    else return;
    event.preventDefault();
  };
  const optionId = (index: number) => `${listId}-${index}`;
  const owner = {
    'aria-controls': listId,
    'aria-activedescendant': choices.length > 0 ? optionId(current) : undefined,
    'aria-label': label,
    'data-autofocus': true,
    onKeyDown,
  };
  return (
    <>
      {search && (
        <input
          {...owner}
          className="search"
          role="combobox"
          aria-expanded="true"
          placeholder={search.placeholder}
          value={search.text}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => {
            search.onChange(event.target.value);
            setPosition(0);
          }}
        />
      )}
      <div
        ref={list}
        className="choices"
        role="listbox"
        aria-multiselectable={onApply !== undefined}
        id={listId}
        aria-label={label}
        aria-busy={isLoading}
        {...(search ? { tabIndex: -1 } : { ...owner, tabIndex: 0 })}
      >
        {choices.map((choice, index) => (
          <button
            key={String(choice.value)}
            type="button"
            tabIndex={-1}
            id={optionId(index)}
            role="option"
            aria-selected={isChosen(choice)}
            aria-disabled={choice.disabledReason !== undefined}
            data-current={index === current || undefined}
            title={choice.label}
            onPointerMove={() => setPosition(index)}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => pick(choice)}
          >
            <span className="choice-label">{choice.label}</span>
            {choice.hint && <span className="choice-hint">{choice.hint}</span>}
            {choice.disabledReason && <span className="choice-reason">{choice.disabledReason}</span>}
          </button>
        ))}
      </div>
      {choices.length === 0 && <p className="choices-empty">{isLoading ? 'Loading…' : 'Nothing matches.'}</p>}
    </>
  );
}

/** Those whose label contains the text, in any case. */
export function matching<Offered extends { readonly label: string }>(
  choices: readonly Offered[],
  text: string,
): readonly Offered[] {
  const wanted = text.trim().toLowerCase();
  return wanted === '' ? choices : choices.filter(({ label }) => label.toLowerCase().includes(wanted));
}
