/** The page tries again by itself, and says when. */
import { MeterlineError } from '@meterline/client';
import { useEffect, useState } from 'react';
import { retryDelay } from '../metrics/retry.js';

const SECOND_MS = 1_000;

interface WaitingProps {
  readonly error: Error;
  /** How often it has failed. */
  readonly failures: number;
  readonly onRetry: () => void;
}

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
        {whatHappened(error)} {left > 0 ? `Trying again in ${left} s.` : 'Trying again…'}
      </span>
      <button type="button" className="quiet" onClick={onRetry}>
        Try now
      </button>
    </div>
  );
}

function whatHappened(error: Error): string {
  if (!(error instanceof MeterlineError)) return 'The service cannot be reached.';
  return error.status === 429
    ? 'Too many requests: the service asks to wait.'
    : `The service has a problem (${error.status}).`;
}
