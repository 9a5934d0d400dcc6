import type { ReactNode } from 'react';
import { problemOf } from './problem.js';

interface PanelProps {
  readonly title: string;
  readonly children: ReactNode;
}

/** In the place of what cannot be shown. */
export function MessagePanel({ title, children }: PanelProps) {
  return (
    <section className="message">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

interface ProblemPanelProps {
  readonly error: Error;
  readonly account: string;
  readonly onRetry: () => void;
}

export function ProblemPanel({ error, account, onRetry }: ProblemPanelProps) {
  const { title, text, canRetry, requestId } = problemOf(error, account);
  return (
    <div role="alert">
      <MessagePanel title={title}>
        <p>{text}</p>
        {canRetry && (
          <button type="button" className="primary" onClick={onRetry}>
            Try again
          </button>
        )}
        {requestId && (
          <p className="hint">
            Request <code>{requestId}</code>, for whoever you ask for help.
          </p>
        )}
      </MessagePanel>
    </div>
  );
}
