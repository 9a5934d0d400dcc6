/** What the page shows in place of figures: messages, problems, the wait for another attempt, and skeletons. */
import type { EpochMs } from '@meterline/catalog';
import { onlineManager } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react';
import { clockText } from '../period/period.js';
import { problemOf, retryDelay, waitingText, waitText } from './problem.js';

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

/** What of a query the page waits for, while the service is away or busy. */
export interface Awaited {
  readonly failureReason: Error | null;
  /** Failed attempts so far. */
  readonly failureCount: number;
  readonly error: Error | null;
  readonly refetch: () => Promise<unknown>;
}

/** The page tries again by itself, and says when. @param asOf of the figures on the screen; undefined: there are none */
export function Waiting({ of, asOf }: { readonly of: readonly Awaited[]; readonly asOf?: EpochMs | undefined }) {
  const failing = of.find(({ failureReason, error }) => failureReason && !error);
  const { failureReason: reason = null, failureCount = 0 } = failing ?? {};
  const [left, setLeft] = useState(0);
  useEffect(() => {
    if (!reason) return;
    const until = performance.now() + retryDelay(failureCount - 1, reason);
    const tick = () => setLeft(Math.max(0, Math.ceil((until - performance.now()) / SECOND_MS)));
    tick();
    const timer = setInterval(tick, SECOND_MS / 4);
    return () => clearInterval(timer);
  }, [reason, failureCount]);
  if (!failing || !reason) return null;
  return (
    <div className="banner" role="status">
      <span>
        {waitingText(reason)} {asOf !== undefined && `The figures are of ${clockText(asOf)} UTC. `}
        {left > 0 ? `Trying again ${waitText(left)}.` : 'Trying again…'}
      </span>
      <button type="button" className="quiet" onClick={() => void failing.refetch()}>
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

/** Bars or lines in place of what is on its way: as large as the chart, so that nothing moves when it comes. */
export function Skeleton({ of }: { readonly of: 'chart' | 'table' }) {
  return <div className={`${of}-skeleton`} aria-hidden="true" />;
}
