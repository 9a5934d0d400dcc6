/** When the page tries again by itself. The client's own attempts are off, so that the page can show what it waits for. */
import { MeterlineConnectionError, MeterlineError } from '@meterline/client';

const MOST_RETRIES = 4;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 15_000;
/** Nobody looks at a page that waits for longer; then its reason, and the way around it, say more. */
const LONGEST_ASKED_SECONDS = 60;
const BUSY: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** @param failures so far, before the one at hand */
export function shouldRetry(failures: number, error: Error): boolean {
  if (failures >= MOST_RETRIES) return false;
  if (error instanceof MeterlineError)
    return BUSY.has(error.status) && (error.retryAfter ?? 0) <= LONGEST_ASKED_SECONDS;
  return error instanceof MeterlineConnectionError;
}

/** Milliseconds: what the service asks for, or else twice as long as the last time. */
export function retryDelay(failures: number, error: Error): number {
  const asked = error instanceof MeterlineError ? error.retryAfter : undefined;
  return asked === undefined ? Math.min(FIRST_DELAY_MS * 2 ** failures, LONGEST_DELAY_MS) : asked * 1_000;
}
