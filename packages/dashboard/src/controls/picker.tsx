/** A choice from a list, which may be long: it can be searched, and the arrow keys move through it. */
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { Popover } from './popover.js';

export interface Choice<Value> {
  readonly value: Value;
  readonly label: string;
  /** Next to the label, in grey. */
  readonly hint?: string | undefined;
  /** Why it cannot be chosen; shown under its label. */
  readonly disabledReason?: string | undefined;
}

interface PickerProps<Value> {
  readonly label: string;
  readonly shown: string;
  readonly choices: readonly Choice<Value>[];
  readonly chosen: Value;
  readonly onChoose: (value: Value) => void;
  readonly active?: boolean;
  readonly disabledReason?: string | undefined;
  /** A field to search in. `freeText` turns any typed text into a value, where values are not limited to the list. */
  readonly search?: { readonly placeholder: string; readonly freeText?: (text: string) => Value } | undefined;
  readonly loading?: boolean;
  /** Called when the list opens. */
  readonly onOpen?: (() => void) | undefined;
}

export function Picker<Value>(props: PickerProps<Value>) {
  const { label, shown, active = false, disabledReason } = props;
  return (
    <Popover label={label} shown={shown} active={active} disabledReason={disabledReason}>
      {(close) => <ChoiceList {...props} close={close} />}
    </Popover>
  );
}

function ChoiceList<Value>({
  label,
  choices,
  chosen,
  onChoose,
  search,
  loading,
  onOpen,
  close,
}: PickerProps<Value> & { close: () => void }) {
  const [text, setText] = useState('');
  const listId = useId();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => onOpen?.(), [onOpen]);

  const offered = useMemo(() => matching(choices, text, search?.freeText), [choices, text, search]);
  const [position, setPosition] = useState(() =>
    Math.max(
      0,
      choices.findIndex(({ value }) => value === chosen),
    ),
  );
  const current = Math.min(position, offered.length - 1);
  useEffect(() => {
    list.current?.children[current]?.scrollIntoView({ block: 'nearest' });
  }, [current]);

  const choose = (choice: Choice<Value> | undefined) => {
    if (!choice || choice.disabledReason !== undefined) return;
    onChoose(choice.value);
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setPosition((current + step + offered.length) % Math.max(1, offered.length));
    else if (event.key === 'Home' && !search) setPosition(0);
    else if (event.key === 'End' && !search) setPosition(offered.length - 1);
    else if (event.key === 'Enter' || (event.key === ' ' && !search)) choose(offered[current]);
    else return;
    event.preventDefault();
  };
  const optionId = (index: number) => `${listId}-${index}`;
  const owner = {
    'aria-controls': listId,
    'aria-activedescendant': offered.length > 0 ? optionId(current) : undefined,
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
          value={text}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => {
            setText(event.target.value);
            setPosition(0);
          }}
        />
      )}
      <div
        ref={list}
        className="choices"
        role="listbox"
        id={listId}
        aria-label={label}
        aria-busy={loading}
        {...(search ? { tabIndex: -1 } : { ...owner, tabIndex: 0 })}
      >
        {offered.map((choice, index) => (
          <Option
            key={choice.label + (choice.hint ?? '')}
            id={optionId(index)}
            choice={choice}
            isChosen={choice.value === chosen}
            isCurrent={index === current}
            onPoint={() => setPosition(index)}
            onChoose={() => choose(choice)}
          />
        ))}
      </div>
      {offered.length === 0 && <p className="choices-empty">{loading ? 'Loading…' : 'Nothing matches.'}</p>}
    </>
  );
}

interface OptionProps<Value> {
  readonly id: string;
  readonly choice: Choice<Value>;
  readonly isChosen: boolean;
  readonly isCurrent: boolean;
  readonly onPoint: () => void;
  readonly onChoose: () => void;
}

function Option<Value>({ id, choice, isChosen, isCurrent, onPoint, onChoose }: OptionProps<Value>) {
  return (
    // The list has the focus, and handles the keys of all its options.
    <button
      type="button"
      tabIndex={-1}
      id={id}
      role="option"
      aria-selected={isChosen}
      aria-disabled={choice.disabledReason !== undefined}
      data-current={isCurrent || undefined}
      onPointerMove={onPoint}
      onPointerDown={(event) => event.preventDefault()}
      onClick={onChoose}
    >
      <span className="choice-label">{choice.label}</span>
      {choice.hint && <span className="choice-hint">{choice.hint}</span>}
      {choice.disabledReason && <span className="choice-reason">{choice.disabledReason}</span>}
    </button>
  );
}

function matching<Value>(
  choices: readonly Choice<Value>[],
  text: string,
  freeText: ((text: string) => Value) | undefined,
): readonly Choice<Value>[] {
  const wanted = text.trim();
  if (wanted === '') return choices;
  const found = choices.filter(({ label }) => label.toLowerCase().includes(wanted.toLowerCase()));
  if (!freeText || found.some(({ label }) => label === wanted)) return found;
  return [...found, { value: freeText(wanted), label: wanted, hint: 'exactly this' }];
}
