/** A button that opens a panel below itself. Escape and a click elsewhere close it. */
import { type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from 'react';

const EDGE_PX = 8;

interface PopoverProps {
  /** What the button is for; its present choice follows. */
  readonly label: string;
  readonly shown?: string;
  /** Marks a choice that differs from the default. */
  readonly active?: boolean;
  /** Why nothing can be chosen: the panel shows this in place of its content. */
  readonly disabledReason?: string | undefined;
  readonly children: (close: () => void) => ReactNode;
}

export function Popover({ label, shown, active = false, disabledReason, children }: PopoverProps) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const panelId = useId();

  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <div className="popover">
      <button
        ref={button}
        type="button"
        className={active ? 'control active' : 'control'}
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-controls={open ? panelId : undefined}
        data-unavailable={disabledReason !== undefined || undefined}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (open && event.key === 'Escape') close();
        }}
      >
        <span className={shown === undefined ? undefined : 'control-label'}>{label}</span>
        {shown !== undefined && <span className="control-value">{shown}</span>}
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d="m3 4.500 3 3 3-3" />
        </svg>
      </button>
      {open && (
        <Panel id={panelId} label={label} onDismiss={() => setOpen(false)} onEscape={close}>
          {disabledReason === undefined ? (
            children(close)
          ) : (
            <p className="panel-reason" role="status">
              {disabledReason}
            </p>
          )}
        </Panel>
      )}
    </div>
  );
}

interface PanelProps {
  readonly id: string;
  readonly label: string;
  readonly onDismiss: () => void;
  readonly onEscape: () => void;
  readonly children: ReactNode;
}

function Panel({ id, label, onDismiss, onEscape, children }: PanelProps) {
  const panel = useRef<HTMLDivElement>(null);

  useLayoutEffect(() => {
    const element = panel.current;
    if (!element) return;
    const { left, right } = element.getBoundingClientRect();
    const overflow = Math.max(0, right - (document.documentElement.clientWidth - EDGE_PX));
    element.style.translate = `${-Math.min(overflow, left - EDGE_PX)}px`;
    element.querySelector<HTMLElement>('[data-autofocus]')?.focus();
  }, []);

  useEffect(() => {
    const pressed = (event: PointerEvent) => {
      if (event.target instanceof Node && !panel.current?.parentElement?.contains(event.target)) onDismiss();
    };
    document.addEventListener('pointerdown', pressed);
    return () => document.removeEventListener('pointerdown', pressed);
  }, [onDismiss]);

  return (
    <div
      ref={panel}
      id={id}
      className="panel"
      role="dialog"
      aria-label={label}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        onEscape();
      }}
      onBlur={(event) => {
        const inside = event.currentTarget.parentElement?.contains(event.relatedTarget);
        if (event.relatedTarget && !inside) onDismiss();
      }}
    >
      {children}
    </div>
  );
}
