/** The page's controls: those of Base UI, with the page's look. */
import { Dialog } from '@base-ui/react/dialog';
import { Popover as BasePopover } from '@base-ui/react/popover';
import { Switch as BaseSwitch } from '@base-ui/react/switch';
import { type ComponentProps, type ReactNode, useEffect, useId, useState } from 'react';
import { ControlText, PLACE } from './lists.js';

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

/** Buttons, by how much they stand out. */
const buttonLike = (className: string) => (props: Omit<ComponentProps<'button'>, 'className'>) => (
  <button type="button" className={className} {...props} />
);
export const Primary = buttonLike('primary');
export const Quiet = buttonLike('quiet');
export const Control = buttonLike('control');

/** As the `ref` of what appears in place of the element that had the focus. */
export const focusOn = (element: HTMLElement | null) => element?.focus();

interface FieldProps extends Omit<ComponentProps<'input'>, 'onChange'> {
  readonly label: string;
  /** What is wrong with the text. */
  readonly problem?: string | undefined;
  readonly onChange?: (text: string) => void;
}

/** A line of text with its label. */
export function Field({ label, problem, onChange, ...input }: FieldProps) {
  const id = useId();
  return (
    <>
      <label className="option-label" htmlFor={id}>
        {label}
      </label>
      <input
        id={id}
        className="field"
        onChange={({ target }) => onChange?.(target.value)}
        aria-describedby={problem && `${id}-problem`}
        aria-invalid={problem !== undefined}
        {...input}
      />
      <ErrorText id={`${id}-problem`}>{problem}</ErrorText>
    </>
  );
}

/** What is wrong, if something is, next to what it is about. */
export function ErrorText({ id, children }: { readonly id?: string; readonly children: ReactNode }) {
  if (!children) return null;
  return (
    <p className="error-text" id={id} role="alert">
      {children}
    </p>
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

/** Browsers have a clipboard only over https or on localhost, and may deny it; the text beside the button can be selected. */
export function CopyButton({ text, label = 'Copy', className }: CopyButtonProps) {
  const [result, setResult] = useState<string>();
  const done = () => setResult('Copied');
  const failed = () => setResult('Select the text to copy it');
  const copy = () => (navigator.clipboard ? void navigator.clipboard.writeText(text).then(done, failed) : failed());
  return (
    <button type="button" className={className} onClick={copy}>
      {result ?? label}
    </button>
  );
}

interface SheetProps {
  readonly className: string;
  readonly title: string;
  readonly hint: string;
  /** Something would be lost: the sheet stays open until its content lets it close, and the browser asks before the page is left. */
  readonly isHeld?: boolean;
  /** Called once it has gone. */
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A sheet at the right edge of the page, over what it is about. */
export function Sheet({ className, title, hint, isHeld = false, onClose, children }: SheetProps) {
  useEffect(() => {
    if (!isHeld) return;
    const ask = (event: Event) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [isHeld]);
  return (
    <Dialog.Root
      defaultOpen
      onOpenChange={(_isOpen, change) => isHeld && change.cancel()}
      onOpenChangeComplete={(isOpen) => !isOpen && onClose()}
    >
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className={`sheet ${className}`}>
          <header className="card-header">
            <div>
              <Dialog.Title>{title}</Dialog.Title>
              <p className="hint">{hint}</p>
            </div>
            {!isHeld && <Dialog.Close className="quiet">Close</Dialog.Close>}
          </header>
          {children}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
