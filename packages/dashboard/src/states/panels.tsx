/** What the page shows in place of figures: messages, problems, the wait for another attempt, and skeletons. */
import { onlineManager } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react';
import { problemOf, retryDelay, waitingText } from './problem.js';

const SECOND_MS = 1_000;

interface MessagePanelProps {
  readonly title: string;
  readonly children: ReactNode;
}

export function MessagePanel({ title, children }: MessagePanelProps) {
  return (
    <section className="message">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** In place of a part of the page whose code does not come. */
export function NotLoaded() {
  return (
    <p className="panel-reason" role="alert">
      This part of the page could not be loaded. Reload the page and try again.
    </p>
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
            Request <code>{requestId}</code>: quote it when you ask for help.
          </p>
        )}
      </MessagePanel>
    </div>
  );
}

interface WaitingProps {
  readonly error: Error;
  /** Failed attempts so far. */
  readonly failures: number;
  readonly onRetry: () => void;
}

/** The page tries again by itself, and says when. */
export function Waiting({ error, failures, onRetry }: WaitingProps) {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    const until = performance.now() + retryDelay(failures - 1, error);
    const tick = () => setLeft(Math.max(0, Math.ceil((until - performance.now()) / SECOND_MS)));
    tick();
    const timer = setInterval(tick, SECOND_MS / 4);
    return () => clearInterval(timer);
  }, [error, failures]);
  return (
    <div className="banner" role="status">
      <span>
        {waitingText(error)} {left > 0 ? `Trying again in ${left} s.` : 'Trying again…'}
      </span>
      <button type="button" className="quiet" onClick={onRetry}>
        Try now
      </button>
    </div>
  );
}

/** Shown while the browser has no network. Afterwards waiting requests continue by themselves. */
export function OfflineBanner() {
  const online = useSyncExternalStore(
    (listener) => onlineManager.subscribe(listener),
    () => onlineManager.isOnline(),
  );
  if (online) return null;
  return (
    <div className="banner" role="status">
      You are offline. The figures stay; the page continues by itself when the connection is back.
    </div>
  );
}

/** Heights of bars in percent: always the same, and all different, because they are React keys too. */
const BARS = [38, 52, 47, 60, 66, 30, 26, 55, 63, 71, 67, 74, 35, 31, 62, 70, 77, 81, 72, 40, 36, 68, 75, 84];
const ROWS = [62, 48, 55, 40, 51, 35];

/** As large as the chart, so that nothing moves when it comes. */
export function ChartSkeleton() {
  return (
    <div className="chart-skeleton" aria-hidden="true">
      {BARS.map((height) => (
        <span key={height} style={{ height: `${height}%` }} />
      ))}
    </div>
  );
}

export function TableSkeleton() {
  return (
    <div className="table-skeleton" aria-hidden="true">
      {ROWS.map((width) => (
        <span key={width} style={{ width: `${width}%` }} />
      ))}
    </div>
  );
}
