/** A sheet at the right edge of the page, over what it is about. */
import { Dialog } from '@base-ui/react/dialog';
import type { ReactNode } from 'react';

interface SheetProps {
  readonly className: string;
  readonly title: string;
  readonly hint: string;
  /** Called once it has gone. */
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function Sheet({ className, title, hint, onClose, children }: SheetProps) {
  return (
    <Dialog.Root defaultOpen onOpenChangeComplete={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className={`sheet ${className}`}>
          <header className="card-header">
            <div>
              <Dialog.Title>{title}</Dialog.Title>
              <p className="hint">{hint}</p>
            </div>
            <Dialog.Close className="quiet">Close</Dialog.Close>
          </header>
          {children}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
