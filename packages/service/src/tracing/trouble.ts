import type { Logger } from 'pino';

/** A collector that is away is told of at every attempt, every few seconds. */
const INTERVAL_MS = 60_000;

/** One line a minute while spans cannot be sent. Nothing else suffers from it. */
export function tracingTrouble(log: Logger, clock: () => number = Date.now): (reason: string) => void {
  let toldAt = Number.NEGATIVE_INFINITY;
  return (reason) => {
    if (clock() - toldAt < INTERVAL_MS) return;
    toldAt = clock();
    log.warn({ event: 'tracing_failed', reason }, 'spans could not be sent and are lost');
  };
}
