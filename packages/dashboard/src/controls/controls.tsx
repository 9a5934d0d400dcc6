/** Wraps the controls of Base UI in the page's style: popovers, buttons, fields, switches and sheets. */
import { Dialog } from '@base-ui/react/dialog';
import { Popover as BasePopover } from '@base-ui/react/popover';
import { Switch as BaseSwitch } from '@base-ui/react/switch';
import { type ComponentProps, type ReactNode, useEffect, useId, useState } from 'react';
import { ControlText, POSITION } from './lists.js';

interface PopoverProps {
  readonly label: string;
  readonly shown?: string;
  /** Whether to highlight the control, because its value is not the default. */
  readonly active?: boolean;
  /** Why the control is unavailable. The panel shows this reason instead of its content. */
  readonly disabledReason?: string | undefined;
  readonly children: (close: () => void) => ReactNode;
}

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
        <BasePopover.Positioner className="positioner" {...POSITION}>
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

const styledButton = (className: string) => (props: Omit<ComponentProps<'button'>, 'className'>) => (
  <button type="button" className={className} {...props} />
);
export const PrimaryButton = styledButton('primary');
export const TextButton = styledButton('quiet');
export const OutlineButton = styledButton('control');

/** Moves the focus to an element when it appears. For use as the `ref` of an element that replaces the focused element. */
export const focusOn = (element: HTMLElement | null) => element?.focus();

interface FieldProps extends Omit<ComponentProps<'input'>, 'onChange'> {
  readonly label: string;
  readonly problem?: string | undefined;
  readonly onChange?: (text: string) => void;
}

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

/** A choice between two or three options that are all visible. */
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

/** Copies the text, or asks the user to select it. Browsers have a clipboard only over HTTPS or on localhost, and may deny access. */
export function CopyButton({ text, label = 'Copy', className }: CopyButtonProps) {
  const [result, setResult] = useState<string>();
  const onSuccess = () => setResult('Copied');
  const onFailure = () => setResult('Select the text to copy it');
  const copy = () =>
    navigator.clipboard ? void navigator.clipboard.writeText(text).then(onSuccess, onFailure) : onFailure();
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
  /** True while closing would lose data. The sheet then stays open, and the browser warns before it leaves the page. */
  readonly isHeld?: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A dialog at the right edge of the page. */
export function Sheet({ className, title, hint, isHeld = false, onClose, children }: SheetProps) {
  useEffect(() => {
    if (!isHeld) return;
    const warn = (event: Event) => event.preventDefault();
    window.addEventListener('beforeunload', warn);
    return () => window.removeEventListener('beforeunload', warn);
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
