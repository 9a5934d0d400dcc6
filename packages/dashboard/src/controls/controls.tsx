/** The page's controls: those of Base UI, with the page's look. */
import { Popover as BasePopover } from '@base-ui/react/popover';
import { Select as BaseSelect } from '@base-ui/react/select';
import { Switch as BaseSwitch } from '@base-ui/react/switch';
import { type ComponentProps, type ReactNode, useId, useState } from 'react';

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

export function ChoiceText({ label, hint, disabledReason }: Choice) {
  return (
    <>
      <span className="choice-label">{label}</span>
      {hint && <span className="choice-hint">{hint}</span>}
      {disabledReason && <span className="choice-reason">{disabledReason}</span>}
    </>
  );
}

interface PopoverProps {
  readonly label: string;
  readonly shown?: string;
  /** Marks a choice that differs from the default. */
  readonly active?: boolean;
  /** Why nothing can be chosen: the panel shows this in place of its content. */
  readonly disabledReason?: string | undefined;
  readonly children: (close: () => void) => ReactNode;
}

/** A button that opens a panel. */
export function Popover({ label, shown, active = false, disabledReason, children }: PopoverProps) {
  const [open, setOpen] = useState(false);
  return (
    <BasePopover.Root open={open} onOpenChange={setOpen}>
      <BasePopover.Trigger
        className={active ? 'control active' : 'control'}
        data-unavailable={disabledReason !== undefined || undefined}
      >
        <ControlText {...{ label, shown }} />
      </BasePopover.Trigger>
      <BasePopover.Portal>
        <BasePopover.Positioner className="positioner" {...PLACE}>
          <BasePopover.Popup className="panel" aria-label={label}>
            {disabledReason === undefined ? (
              children(() => setOpen(false))
            ) : (
              <p className="panel-reason" role="status">
                {disabledReason}
              </p>
            )}
          </BasePopover.Popup>
        </BasePopover.Positioner>
      </BasePopover.Portal>
    </BasePopover.Root>
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

interface FieldProps extends Omit<ComponentProps<'input'>, 'onChange'> {
  readonly label: string;
  readonly onChange: (text: string) => void;
}

/** A line of text with its label. */
export function Field({ label, onChange, ...input }: FieldProps) {
  const id = useId();
  return (
    <>
      <label className="option-label" htmlFor={id}>
        {label}
      </label>
      <input id={id} className="field" onChange={({ target }) => onChange(target.value)} {...input} />
    </>
  );
}

interface SegmentsProps {
  readonly legend: string;
  readonly chosen: string;
  readonly choices: readonly string[];
  readonly onChoose: (choice: string) => void;
}

/** A choice of one of two or three, all of which are seen. */
export function Segments({ legend, chosen, choices, onChoose }: SegmentsProps) {
  return (
    <fieldset className="segments">
      <legend className="sr-only">{legend}</legend>
      {choices.map((choice) => (
        <button key={choice} type="button" aria-pressed={choice === chosen} onClick={() => onChoose(choice)}>
          {choice}
        </button>
      ))}
    </fieldset>
  );
}

interface SwitchProps {
  readonly label: string;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}

export function Switch({ label, isOn, onChange }: SwitchProps) {
  const id = useId();
  return (
    <div className="switch">
      <BaseSwitch.Root id={id} className="switch-track" checked={isOn} onCheckedChange={onChange}>
        <BaseSwitch.Thumb className="switch-thumb" />
      </BaseSwitch.Root>
      <label htmlFor={id}>{label}</label>
    </div>
  );
}

interface CopyButtonProps {
  readonly text: string;
  readonly label?: string;
  readonly className: string;
}

/** Browsers have a clipboard only over https or on localhost; elsewhere the text beside it can be selected. */
export function CopyButton({ text, label = 'Copy', className }: CopyButtonProps) {
  const [copied, setCopied] = useState(false);
  const copy = () => void navigator.clipboard?.writeText(text).then(() => setCopied(true));
  return (
    <button type="button" className={className} onClick={copy}>
      {copied ? 'Copied' : label}
    </button>
  );
}
